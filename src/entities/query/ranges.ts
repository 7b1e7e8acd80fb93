import type { Db } from '../../storage/port'
import { and, fragment, type SqlFragment } from '../store/sql-fragments'
import { thresholds } from './cardinality'

/**
 * Rows to split, and the columns that order them uniquely. A slice has at most `size` rows, the first one `first`. The
 * first slice begins after the place `start`.
 */
export type RangeSource = {
  from: string
  where: SqlFragment
  by: string[]
  descending?: boolean
  size?: number
  first?: number
  start?: unknown[]
}

/**
 * The conditions that hold only for the rows of one slice, and their number, which is unknown for the last slice. They come
 * first in a statement: of two bounds in the order of an index, SQLite begins at the first, and reads up to the other.
 */
export type RowRange = { conditions: SqlFragment[]; rows?: number }

/** Splits the rows into consecutive slices, and yields to other requests after each. */
export async function* splitIntoRanges(
  db: Db,
  { from, where, by, descending = false, size = thresholds.rows, first = size, start }: RangeSource,
): AsyncGenerator<RowRange> {
  const columns = by.join(', ')
  const order = by.map((one) => `${one} ${descending ? 'desc' : 'asc'}`).join(', ')
  const compare = (sign: string, end: unknown[]) =>
    by.length > 1
      ? fragment(`(${columns}) ${sign} (${end.map(() => '?').join(', ')})`, ...end)
      : fragment(`${columns} ${sign} ?`, ...end)
  let after = start ? [compare(descending ? '<' : '>', start)] : []
  for (let rows = Math.min(first, size); ; rows = Math.min(size, rows * 8)) {
    const remaining = and([...after, where])
    const last = `select ${columns} from ${from} where ${remaining.sql} order by ${order} limit 1 offset ?`
    const [end] = await db.query(last, [...remaining.params, rows - 1])
    yield end ? { conditions: [...after, compare(descending ? '>=' : '<=', end)], rows } : { conditions: after }
    if (!end) return
    after = [compare(descending ? '<' : '>', end)]
    await db.yieldToOthers()
  }
}

/** Returns the number of rows if it is below a limit. */
export async function countFewRows(db: Db, from: string, { sql, params }: SqlFragment, limit: number) {
  const [row] = await db.query(
    `select count(*) from (select 1 from ${from} where ${sql} limit ${limit}) as few`,
    params,
  )
  const count = Number(row![0])
  return count < limit ? count : undefined
}

/** Returns the number of rows, for conditions that an index alone can answer. */
export async function countRows(db: Db, rows: Pick<RangeSource, 'from' | 'where' | 'by'>): Promise<number> {
  const few = await countFewRows(db, rows.from, rows.where, thresholds.slice)
  if (few !== undefined) return few
  let counted = 0
  for await (const { conditions, rows: size } of splitIntoRanges(db, { ...rows, size: thresholds.slice })) {
    const { sql, params } = and([...conditions, rows.where])
    counted += size ?? Number((await db.query(`select count(*) from ${rows.from} where ${sql}`, params))[0]![0])
  }
  return counted
}
