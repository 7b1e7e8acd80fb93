import type { Model } from '../../blueprints/model'
import type { Reach } from '../../blueprints/rules'
import type { Db } from '../../storage/port'
import { and, holds, list, type Part, part, within } from '../conditions'
import { columnsOf, fitsAll } from '../fitting'
import type { Keys } from '../keys'
import type { Condition, Query } from '../query'
import { hasWords } from '../scans'

const AT_ONCE = 500 // entities looked at by one statement
const TEXT = 1 << 20 // characters of entities read by one statement, unless a single one is larger

type Place = [created: number, seq: number]

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
  if (search !== undefined) filters.push(hasWords(search))
  for (let from: Place = [-1, -1]; ; ) {
    const to = await endOfSlice(db, asked, from)
    if (!to) return
    const between = part('(e.created, e.seq) > (?, ?) and (e.created, e.seq) <= (?, ?)', ...from, ...to)
    const { sql, params } = and([...asked, between, ...filters])
    const columns = judged ? ['e.shown', 'e.keys', ...columnsOf(likes)] : ['e.shown']
    const found = await db.ask(
      `select ${columns.join(', ')} from entities e where ${sql} order by e.created asc, e.seq asc`,
      params,
    )
    const fitting: string[] = []
    for (const [shown, text, ...values] of found) {
      const keys: Keys = judged ? JSON.parse(text as string) : {}
      if (meets(keys, tested) && (await fitsAll(db, likes, keys, values))) fitting.push(shown as string)
    }
    yield fitting
    from = to
  }
}

async function endOfSlice(db: Db, asked: Part[], from: Place): Promise<Place | undefined> {
  const { sql, params } = and([...asked, part('(e.created, e.seq) > (?, ?)', ...from)])
  const order = list([part('e.created asc'), part('e.seq asc')]).sql
  const select = `select e.created, e.seq, length(e.shown) from entities e where ${sql} order by ${order} limit ?`
  const rows = (await db.ask(select, [...params, AT_ONCE])) as [number, number, number][]
  let size = 0
  const over = rows.findIndex(([, , length]) => {
    size += length
    return size > TEXT
  })
  const last = rows[over < 0 ? rows.length - 1 : Math.max(0, over - 1)]
  return last && [last[0], last[1]]
}

/**
 * What SQL answers for lists and parts of objects by collecting all entities that have such a value: once for a list, but
 * here that would be once for each slice.
 */
const isTestedHere = ({ target, is }: Condition) =>
  target.at === 'field' && !target.single && (is === 'between' || is === 'present' || is === 'absent')

function meets(keys: Keys, conditions: Condition[]): boolean {
  return conditions.every(({ target, ...test }) => {
    const values = target.at === 'field' ? [keys[target.label] ?? []].flat() : []
    if (test.is !== 'between') return values.length > 0 === (test.is === 'present')
    const { from, to } = test
    return values.some(
      (value) =>
        (!from || order(value, from.value) > (from.open ? 0 : -1)) &&
        (!to || order(value, to.value) < (to.open ? 0 : 1)),
    )
  })
}

/** As the engines order texts: by their bytes. */
const order = (one: string, other: string | number) => Buffer.compare(Buffer.from(one), Buffer.from(`${other}`))
