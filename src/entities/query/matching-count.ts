import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { count } from './count'
import { estimateCount, type MatchingCount } from './count-estimate'
import type { CursorPosition } from './cursor'
import { findFiltered, MAX_ENTITIES_PER_READ, resolveLikes } from './like-filter'
import { byCreated } from './order'
import type { Query } from './query-parser'
import { getCached, readUntilChange, setCached } from './read-cache'
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
    // Texts that are compared outside of the database have to be read anyway.
    if (resolved.likes.length) return { count: await countFiltered(db, model, rowScope, resolved), isEstimated: false }
    return estimateCount(db, model, rowScope, resolved)
  })
  if (estimate.isEstimated && !db.isUncached)
    setCached(db, model, `estimate ${filter}`, { until: performance.now() + ESTIMATE_AGE_MS, estimate })
  return estimate
}

/** Returns a text that is the same for the same filters and row scope. */
function describeFilter(rowScope: RowScope, { conditions, likes, search }: Query): string {
  const filters = [
    conditions.map(({ target, ...test }) => [targetKey(target), test]),
    likes.map(({ target, pattern }) => [targetKey(target), [...pattern.parts]]),
  ]
  return JSON.stringify([rowScope, search, ...filters])
}

/** Returns how many entities match, including the remaining patterns. */
async function countFiltered(db: Db, model: Model, rowScope: RowScope, query: Query): Promise<number> {
  if (!query.likes.length) return count(db, model, rowScope, query)
  const unpaged = { ...query, skip: 0, ranked: false, order: [byCreated(true)] }
  let counted = 0
  for (let after: CursorPosition | undefined; ; ) {
    const { rows, positionAfter } = await findFiltered(db, ['e.seq'], model, rowScope, unpaged, {
      limit: MAX_ENTITIES_PER_READ,
      after,
    })
    counted += rows.length
    if (rows.length < MAX_ENTITIES_PER_READ) return counted
    after = positionAfter(rows.length)
  }
}
