import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { and, type SqlFragment } from '../store/sql-fragments'
import { chooseTimeOrderedScan } from './access-path'
import { thresholds } from './cardinality'
import { count } from './count'
import type { Query } from './query-parser'
import { splitIntoRanges } from './ranges'
import { type ScanPassage, toPassage } from './scans'

/** How many entities match: an exact number, or an estimate of a large one. */
export type MatchingCount = { count: number; isEstimated: boolean }

/**
 * Returns how many entities match: a large number by the share of matching entities in a sample of each slice, others
 * exactly. The query has no patterns.
 */
export async function estimateCount(db: Db, model: Model, rowScope: RowScope, query: Query): Promise<MatchingCount> {
  const scan = await chooseTimeOrderedScan(db, model, rowScope, query)
  const rows = toPassage(model, scan, rowScope, query.conditions)
  // The scan of a few values is not in the order of time, and known to be short.
  if (scan.by === 'values') return { count: await countRowsWhere(db, rows, rows.matching), isEstimated: false }
  let [counted, read] = [0, 0]
  for await (const { conditions, rows: size } of splitIntoRanges(db, rows)) {
    counted += await countRowsWhere(db, rows, and([...conditions, rows.matching]))
    if (size === undefined) return { count: counted, isEstimated: false }
    read += size
    if (counted > thresholds.exactCount || read > thresholds.countedRows) break
  }
  const estimated = roundEstimate(await sampleCount(db, rows))
  if (Math.max(counted, estimated) > thresholds.exactCount)
    return { count: Math.max(counted, estimated), isEstimated: true }
  // A few among many rows are easily missed by a sample.
  return { count: await count(db, model, rowScope, query), isEstimated: false }
}

/** Estimates how many rows match, by the first rows of each slice. */
async function sampleCount(db: Db, rows: ScanPassage): Promise<number> {
  let estimated = 0
  for await (const { conditions, rows: size } of splitIntoRanges(db, { ...rows, size: thresholds.slice })) {
    const slice = and([...conditions, rows.where])
    const sample = await splitIntoRanges(db, { ...rows, where: slice, size: thresholds.sample }).next()
    const { conditions: inSample = [], rows: sampled } = sample.value ?? {}
    const matching = await countRowsWhere(db, rows, and([...inSample, ...conditions, rows.matching]))
    // A slice that is shorter than a sample is counted.
    estimated += sampled ? (matching / sampled) * (size ?? (await countRowsWhere(db, rows, slice))) : matching
  }
  return estimated
}

const countRowsWhere = async (db: Db, { from }: ScanPassage, { sql, params }: SqlFragment) =>
  Number((await db.query(`select count(*) from ${from} where ${sql}`, params))[0]![0])

/** Rounds to two digits, so that nobody takes the number for exact. */
const roundEstimate = (estimate: number) => Number(estimate.toPrecision(2))
