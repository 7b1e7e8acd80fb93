import type { Db } from '../../storage/port'
import type { SqlFragment } from '../store/sql-fragments'

/** The thresholds of the query planner, in rows. Tests lower them, so that few entities count as many. */
export const thresholds = {
  /** The rows of a condition with fewer rows than this are collected; counting stops here. */
  few: 2_000,
  /** A list that reads and sorts more rows than this requests a compound index. */
  short: 50,
  /** The rows of an order that are tried one by one before all matches are collected from the indexes. */
  stretch: 2_000,
  /** At most this many rows are sorted by the database. */
  sorted: 2_000,
  /** Rows of an index that one statement reads. */
  slice: 20_000,
  /** With this many matches of a search, a rank says little, and computing it for all would be slow. */
  ranked: 500,
  /** Fewer matches than this are all read from an unordered index, and sorted. */
  sortedMatches: 10_000,
  /** Rows that one statement scans when it reads the entity of each. */
  rows: 2_000,
  /** With fewer rows to read, a query needs no index. */
  unindexed: 200,
  /** Up to so many matches, an estimated count is exact. */
  exactCount: 10_000,
  /** The rows that an estimated count checks one by one, before it takes samples. */
  countedRows: 20_000,
  /** The rows of each slice that are checked as a sample. */
  sample: 500,
  /** The number of index rows from one mark to the next. Counts of fewer rows need no marks. */
  marked: 256,
  /** At most this many rows of an index are sorted by time. */
  sortedByTime: 20_000,
}

/** Returns how many rows the planner assumes when it has counted `rows`, up to `limit`. Tests replace it by wrong numbers. */
export const estimates = { judge: (rows: number, _limit: number) => rows }

/**
 * Returns the number of rows, at most `limit`. The number may be a few seconds old. It only guides the choice of the
 * access path, so a stale number costs time but never a row.
 */
export async function estimateRows(db: Db, from: string, where: SqlFragment, limit = thresholds.few): Promise<number> {
  const { sql, params } = where
  const known = getKnownRows(db, from, where, limit)
  if (known !== undefined) return known
  const [row] = await db.query(
    `select count(*) from (select 1 from ${from} where ${sql} limit ${limit}) as few`,
    params,
  )
  return rememberRows(db, from, where, limit, Number(row![0]))
}

/** Returns the number of rows that `estimateRows` would return without a statement. */
export function getKnownRows(db: Db, from: string, where: SqlFragment, limit: number): number | undefined {
  const known = getEstimates(db).get(toEstimateKey(from, where, limit))
  return known && known.until > performance.now() ? known.size : undefined
}

/** Caches a number of rows for `estimateRows`, and returns the estimate. */
export function rememberRows(
  db: Db,
  from: string,
  where: SqlFragment,
  limit: number,
  rows: number,
  ttl = ESTIMATE_TTL_MS,
): number {
  const [estimatesOfDb, size] = [getEstimates(db), estimates.judge(rows, limit)]
  if (estimatesOfDb.size >= MAX_ESTIMATES) estimatesOfDb.clear()
  estimatesOfDb.set(toEstimateKey(from, where, limit), { size, until: performance.now() + ttl })
  return size
}

const toEstimateKey = (from: string, { sql, params }: SqlFragment, limit: number) =>
  `${limit} ${from} ${sql} ${params.join(' ')}`

export const ESTIMATE_TTL_MS = 5_000 // ms
const MAX_ESTIMATES = 5_000
const estimateCache = new WeakMap<Db, Map<string, { size: number; until: number }>>()

function getEstimates(wrapped: Db) {
  const db = wrapped.origin ?? wrapped
  const known = estimateCache.get(db) ?? new Map()
  estimateCache.set(db, known)
  return known
}
