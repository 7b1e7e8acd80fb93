import type { Db } from '../../storage/port'
import { and, commaList, fragment, type SqlFragment, takeWithinSize } from '../store/sql-fragments'

const ENTITIES_PER_READ = 500 // entities per statement
const MAX_BYTES_PER_READ = 1 << 20 // bytes of entities read by one statement, unless a single one is larger

export type TimePosition = [created: number, seq: number]
type EntitySlice = { to: TimePosition; seqs: number[] }

/**
 * Returns the next slice of entities, limited in number and bytes, and its end position; undefined when none are left.
 */
export async function readNextSlice(
  db: Db,
  scopeParts: SqlFragment[],
  from: TimePosition,
  limit = ENTITIES_PER_READ,
): Promise<EntitySlice | undefined> {
  const { sql, params } = and([...scopeParts, fragment('(e.created, e.seq) > (?, ?)', ...from)])
  const order = commaList([fragment('e.created asc'), fragment('e.seq asc')]).sql
  const select = `select e.created, e.seq, octet_length(e.shown) from entities e where ${sql} order by ${order} limit ?`
  const rows = (await db.query(select, [...params, limit])) as [number, number, number][]
  const slice = takeWithinSize(rows, MAX_BYTES_PER_READ, ([, , size]) => size)
  const last = slice.at(-1)
  return last && { to: [last[0], last[1]], seqs: slice.map(([, seq]) => seq) }
}
