import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { and, oneOf } from '../store/sql-fragments'
import { chooseTimeOrderedScan } from './access-path'
import { count } from './count'
import { estimateCount, type MatchingCount } from './count-estimate'
import { resolveLikes } from './like-filter'
import { LiteralScan } from './literal-scan'
import type { Query } from './query-parser'
import { splitIntoRanges } from './ranges'
import { getCached, readUntilChange, setCached } from './read-cache'
import { createRowFilter, toColumnsOf } from './row-filter'
import { hasEntities, toPassage } from './scans'
import { targetKey } from './target'

/** Returns how many entities match. The number is kept in memory until one of the blueprint's entities changes. */
export const countMatching = (db: Db, model: Model, rowScope: RowScope, query: Query): Promise<number> =>
  readUntilChange(db, model, `count ${describeFilter(rowScope, query)}`, async () =>
    countFiltered(db, model, rowScope, await resolveLikes(db, model, query)),
  )

const ESTIMATE_AGE_MS = 60_000 // how long an estimate is answered, whatever changes
type CachedEstimate = { until: number; estimate: MatchingCount }

/** Returns how many entities match in bounded time: exactly where they are few or already counted. */
export async function estimateMatching(db: Db, model: Model, rowScope: RowScope, query: Query): Promise<MatchingCount> {
  const filter = describeFilter(rowScope, query)
  const cached = getCached<CachedEstimate>(db, model, `estimate ${filter}`)
  if (cached && cached.until > performance.now()) return cached.estimate
  const estimate = await readUntilChange(db, model, `exact or estimate ${filter}`, async () => {
    const resolved = await resolveLikes(db, model, query)
    // What is compared outside of the database has to be read anyway.
    if (createRowFilter(model, resolved))
      return { count: await countFiltered(db, model, rowScope, resolved), isEstimated: false }
    return estimateCount(db, model, rowScope, resolved)
  })
  if (estimate.isEstimated && !db.isUncached)
    setCached(db, model, `estimate ${filter}`, { until: performance.now() + ESTIMATE_AGE_MS, estimate })
  return estimate
}

/** Returns a text that is the same for the same filters and row scope. */
function describeFilter(rowScope: RowScope, { conditions, likes, search, words }: Query): string {
  const filters = [
    conditions.map(({ target, ...test }) => [targetKey(target), test]),
    likes.map(({ target, pattern }) => [targetKey(target), [...pattern.parts]]),
  ]
  return JSON.stringify([rowScope, search ?? words, ...filters])
}

/** Returns how many entities match, including what is filtered here. */
async function countFiltered(db: Db, model: Model, rowScope: RowScope, query: Query): Promise<number> {
  const filter = createRowFilter(model, query)
  if (!filter) return count(db, model, rowScope, query)
  const scan = await chooseTimeOrderedScan(db, model, rowScope, query)
  const { matching, ...rows } = toPassage(model, scan, rowScope, query.conditions)
  const columns = toColumnsOf(rows.from, filter)
  const literals = filter.literal && hasEntities(rows.from) ? new LiteralScan(filter.literal) : undefined
  let counted = 0
  for await (const { conditions } of splitIntoRanges(db, rows)) {
    const near = await literals?.find(db, rows.from, and([...conditions, matching]))
    if (near && !near.length) continue
    const { sql, params } = and([...conditions, matching, ...(near ? [oneOf('e.seq', near)] : [])])
    const read = await db.query(`select ${columns.join(', ')} from ${rows.from} where ${sql}`, params)
    counted += (await filter.test(db, read, 0)).filter(Boolean).length
  }
  return counted
}
