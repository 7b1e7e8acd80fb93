import type { Db } from '../storage/port'
import type { Part } from './conditions'

/** What decides how to look, in rows. Tests make them small, so that few entities are many. */
export const bounds = {
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
export async function few(db: Db, from: string, { sql, params }: Part, most = bounds.few) {
  const estimates = estimatesOf(db)
  const [key, time] = [`${most} ${from} ${sql} ${params.join(' ')}`, performance.now()]
  const known = estimates.get(key)
  if (known && known.until > time) return known.size
  const [row] = await db.ask(`select count(*) from (select 1 from ${from} where ${sql} limit ${most}) as few`, params)
  const size = Number(row![0])
  if (estimates.size >= ESTIMATES) estimates.clear()
  estimates.set(key, { size, until: time + TRUSTED })
  return size
}

export const TRUSTED = 5_000 // ms
const ESTIMATES = 5_000
const estimated = new WeakMap<Db, Map<string, { size: number; until: number }>>()

function estimatesOf(asked: Db) {
  const db = asked.origin ?? asked
  const known = estimated.get(db) ?? new Map()
  estimated.set(db, known)
  return known
}
