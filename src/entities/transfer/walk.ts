import type { Model } from '../../blueprints/model'
import type { Reach } from '../../blueprints/rules'
import type { Db } from '../../storage/port'
import { and, fitting, holds, list, type Part, part, within } from '../conditions'
import { columnsOf, fitsAll } from '../fitting'
import type { Keys } from '../keys'
import { holdsFor } from '../meets'
import type { Condition, Query } from '../query'
import { haveWords } from '../scans'
import { shownIn } from '../wire'

const AT_ONCE = 500 // entities looked at by one statement
const TEXT = 1 << 20 // bytes of entities read by one statement, unless a single one is larger

export type Place = [created: number, seq: number]
type Slice = { to: Place; seqs: number[] }

/**
 * What is kept of the entities within reach that meet the conditions, the oldest first, a slice at a time. Each slice is a
 * bounded amount of work and memory, however many match; no entity comes twice.
 */
export async function* walk(db: Db, model: Model, reach: Reach, query: Query): AsyncGenerator<string[]> {
  const { conditions, likes, search } = query
  const tested = conditions.filter(isTestedHere)
  const judged = tested.length + likes.length > 0
  const asked = [part('e.blueprint = ?', model.key), ...within(reach)]
  const filters = conditions.filter((one) => !tested.includes(one)).map(holds)
  for (let from: Place = [-1, -1]; ; ) {
    const slice = await nextSlice(db, asked, from)
    if (!slice) return
    const { to, seqs } = slice
    const between = part('(e.created, e.seq) > (?, ?) and (e.created, e.seq) <= (?, ?)', ...from, ...to)
    const words = search === undefined ? [] : [haveWords(search, Math.min(...seqs), Math.max(...seqs))]
    const { sql, params } = and([...asked, between, ...filters, ...words])
    const columns = judged ? [shownIn(model), 'e.keys', ...columnsOf(likes)] : [shownIn(model)]
    const found = await db.ask(
      `select ${columns.join(', ')} from entities e where ${sql} order by e.created asc, e.seq asc`,
      params,
    )
    const matching: string[] = []
    for (const [shown, text, ...values] of found) {
      const keys: Keys = judged ? JSON.parse(text as string) : {}
      if (meet(keys, tested) && (await fitsAll(db, likes, keys, values))) matching.push(shown as string)
    }
    yield matching
    from = to
  }
}

/** The next slice of entities that are not too many, or too large, to be read at once, and where it ends. */
export async function nextSlice(db: Db, asked: Part[], from: Place, most = AT_ONCE): Promise<Slice | undefined> {
  const { sql, params } = and([...asked, part('(e.created, e.seq) > (?, ?)', ...from)])
  const order = list([part('e.created asc'), part('e.seq asc')]).sql
  const select = `select e.created, e.seq, octet_length(e.shown) from entities e where ${sql} order by ${order} limit ?`
  const rows = (await db.ask(select, [...params, most])) as [number, number, number][]
  const slice = fitting(rows, TEXT, ([, , size]) => size)
  const last = slice.at(-1)
  return last && { to: [last[0], last[1]], seqs: slice.map(([, seq]) => seq) }
}

/**
 * What SQL answers for lists and parts of objects by collecting all entities that have such a value: once for a list, but
 * here that would be once for each slice.
 */
const isTestedHere = ({ target, is }: Condition) =>
  target.at === 'field' && !target.single && (is === 'between' || is === 'present' || is === 'absent')

const meet = (keys: Keys, conditions: Condition[]) => conditions.every((one) => holdsFor(one, { keys }))
