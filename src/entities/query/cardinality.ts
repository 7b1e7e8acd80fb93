import type { Db } from '../../storage/port'
import type { SqlFragment } from '../store/sql-fragments'

/** What decides how to look, in rows. Tests make them small, so that few entities are many. */
export const thresholds = {
  /** A condition that fewer meet is answered by collecting them; counting stops here. */
  few: 2_000,
  /** So far an order is walked, asking each entity, before all that match are found out by the indexes. */
  stretch: 2_000,
  /** As many are sorted by the engine. */
  sorted: 2_000,
  /** Rows of an index read by one statement. */
  slice: 20_000,
  /** Rows that one statement goes through, asking the entity of each. */
  rows: 2_000,
}

/**
 * The number of rows, but no more than `most`; as it was a few seconds ago at most. It decides only how to look, so an old
 * number costs time and never a row.
 */
export async function estimateRows(db: Db, from: string, { sql, params }: SqlFragment, limit = thresholds.few) {
  const estimates = getEstimates(db)
  const [key, time] = [`${limit} ${from} ${sql} ${params.join(' ')}`, performance.now()]
  const cached = estimates.get(key)
  if (cached && cached.until > time) return cached.size
  const [row] = await db.query(
    `select count(*) from (select 1 from ${from} where ${sql} limit ${limit}) as few`,
    params,
  )
  const size = Number(row![0])
  if (estimates.size >= MAX_ESTIMATES) estimates.clear()
  estimates.set(key, { size, until: time + ESTIMATE_TTL_MS })
  return size
}

export const ESTIMATE_TTL_MS = 5_000 // ms
const MAX_ESTIMATES = 5_000
const estimateCache = new WeakMap<Db, Map<string, { size: number; until: number }>>()

function getEstimates(wrapped: Db) {
  const db = wrapped.origin ?? wrapped
  const estimates = estimateCache.get(db) ?? new Map()
  estimateCache.set(db, estimates)
  return estimates
}
