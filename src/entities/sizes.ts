import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { and, type Part } from './conditions'
import type { Condition } from './query'
import { rangesOf } from './ranges'
import { alone, type Scan } from './scans'

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

/** How many entities match, all of them: a slice after the other, where those are not known to be few. */
export async function total(db: Db, scan: Scan, reach: Reach, conditions: Condition[]) {
  const { from, where } = alone(scan, reach, conditions)
  const countOf = async ({ sql, params }: Part) =>
    Number((await db.ask(`select count(*) from ${from} where ${sql}`, params))[0]![0])
  if (scan.by === 'values') return countOf(where)
  // Without conditions that an entity has to be looked at for, which would make finding the end of a slice as dear as all.
  const all = from === 'entities e' ? alone(scan, reach, []).where : scan.where
  let counted = 0
  for await (const range of rangesOf(db, { from, where: all, order: scan.time.join(', ') }))
    counted += await countOf(and([where, ...range]))
  return counted
}
