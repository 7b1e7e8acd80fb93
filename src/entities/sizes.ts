import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import type { Part } from './conditions'
import type { Condition } from './query'
import { alone, type Scan } from './scans'

/** A condition that fewer rows meet is answered by collecting them; counting stops here. */
export const FEW = 1_000

/**
 * The number of rows, but no more than `FEW`; as it was a few seconds ago at most. It decides only how to look, so an old
 * number costs time and never a row.
 */
export async function few(db: Db, from: string, { sql, params }: Part, most = FEW) {
  const estimates = estimatesOf(db)
  const [key, time] = [`${from} ${sql} ${params.join(' ')}`, performance.now()]
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

function estimatesOf(db: Db) {
  const known = estimated.get(db) ?? new Map()
  estimated.set(db, known)
  return known
}

/** How many entities match, all of them. */
export async function total(db: Db, scan: Scan, reach: Reach, conditions: Condition[]) {
  const { from, where } = alone(scan, reach, conditions)
  const [row] = await db.ask(`select count(*) from ${from} where ${where.sql}`, where.params)
  return Number(row![0])
}
