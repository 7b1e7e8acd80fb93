import type { Db } from '../storage/port'
import { and, type Part, part } from './conditions'

/** Rows that one statement goes through at most, so that others get their turn. */
export const ROWS_OF_SLICE = 2_500

/** What is gone through, and in the order of which columns, which tell any two rows apart. */
export type Rows = { from: string; where: Part; order: string; size?: number }

/** Conditions that part all those rows into slices, one after the other. Others get their turn after each. */
export async function* rangesOf(db: Db, { from, where, order, size = ROWS_OF_SLICE }: Rows): AsyncGenerator<Part[]> {
  for (let after: Part[] = []; ; ) {
    const rest = and([where, ...after])
    const last = `select ${order} from ${from} where ${rest.sql} order by ${order} limit 1 offset ?`
    const [end] = await db.ask(last, [...rest.params, size - 1])
    const compared = (sign: string) =>
      end ? [part(`(${order}) ${sign} (${end.map(() => '?').join(', ')})`, ...end)] : []
    yield [...after, ...compared('<=')]
    if (!end) return
    after = compared('>')
    await db.pause()
  }
}
