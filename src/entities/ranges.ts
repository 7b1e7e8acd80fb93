import type { Db } from '../storage/port'
import { and, type Part, part } from './conditions'
import { bounds } from './sizes'

/** What is gone through, in the order of which columns, which tell any two rows apart; and how many rows come first. */
export type Rows = { from: string; where: Part; by: string[]; descending?: boolean; size?: number; first?: number }

/** What is true of the rows of one slice only, and how many those are, which is known of all but the last. */
export type Range = { conditions: Part[]; rows?: number }

/** Parts all those rows into slices, one after the other. Others get their turn after each. */
export async function* rangesOf(
  db: Db,
  { from, where, by, descending = false, size = bounds.rows, first = size }: Rows,
): AsyncGenerator<Range> {
  const columns = by.join(', ')
  const order = by.map((one) => `${one} ${descending ? 'desc' : 'asc'}`).join(', ')
  const compared = (sign: string, end: unknown[]) =>
    by.length > 1
      ? part(`(${columns}) ${sign} (${end.map(() => '?').join(', ')})`, ...end)
      : part(`${columns} ${sign} ?`, ...end)
  let after: Part[] = []
  for (let rows = Math.min(first, size); ; rows = Math.min(size, rows * 8)) {
    const rest = and([where, ...after])
    const last = `select ${columns} from ${from} where ${rest.sql} order by ${order} limit 1 offset ?`
    const [end] = await db.ask(last, [...rest.params, rows - 1])
    yield end ? { conditions: [...after, compared(descending ? '>=' : '<=', end)], rows } : { conditions: after }
    if (!end) return
    after = [compared(descending ? '<' : '>', end)]
    await db.pause()
  }
}

/** How many rows there are, where an index alone tells. */
export async function countRows(db: Db, rows: Pick<Rows, 'from' | 'where' | 'by'>): Promise<number> {
  let counted = 0
  for await (const { conditions, rows: known } of rangesOf(db, { ...rows, size: bounds.slice })) {
    const { sql, params } = and([rows.where, ...conditions])
    counted += known ?? Number((await db.ask(`select count(*) from ${rows.from} where ${sql}`, params))[0]![0])
  }
  return counted
}
