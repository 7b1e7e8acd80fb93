import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { and, type Part } from './conditions'
import type { Condition } from './query'
import { rangesOf } from './ranges'
import { passageOf, type Scan } from './scans'

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
export async function total(db: Db, model: Model, scan: Scan, reach: Reach, conditions: Condition[]) {
  const { matching, ...rows } = passageOf(model, scan, reach, conditions)
  const countOf = async ({ sql, params }: Part) =>
    Number((await db.ask(`select count(*) from ${rows.from} where ${sql}`, params))[0]![0])
  if (scan.by === 'values') return countOf(matching)
  let counted = 0
  for await (const { conditions } of rangesOf(db, rows)) counted += await countOf(and([matching, ...conditions]))
  return counted
}
