import type { Model } from '../../blueprints/model'
import type { Reach } from '../../blueprints/rules'
import type { Db } from '../../storage/port'
import { and, type FieldTarget, list, type Part, part } from '../conditions'
import { filter, type Scan, scanOf } from '../plan'
import type { Query } from '../query'

/** A text (or null) for each thing asked, how many entities agree in all of them, and the first of these. */
export type Row = [...texts: (string | number | null)[], count: number, first: number]

/** Rows that one statement goes through at most, so that others get their turn. */
const SLICE = 10_000
const LARGE = 100 // where each has a list or a document, which may be as long as a body

/** What is gone through, in which order, and what it is asked. */
type Pass = { scan: Scan; all: Part; matching: Part; order: Part; asked: Part[]; first: string; slice: number }

/** What entities that match have, a slice after the other. Nothing but one slice is ever in memory. */
export async function* entitiesBySlices(
  db: Db,
  model: Model,
  reach: Reach,
  query: Query,
  asked: Part[],
  large = false,
): AsyncGenerator<Row[]> {
  const scan = await scanOf(db, model, reach, query)
  const [all, matching] = [filter(scan, reach, []), filter(scan, reach, query.conditions)]
  const slice = large ? LARGE : SLICE
  yield* pass(db, { scan, all, matching, order: list(scan.time.map((one) => part(one))), asked, first: 'e.seq', slice })
}

/** The values of a field, from the index alone; of entities without any there is nothing. */
export async function* valuesBySlices(db: Db, { field, path }: FieldTarget): AsyncGenerator<Row[]> {
  const where = part('i.field = ? and i.path = ?', field.number, path)
  const scan: Scan = { from: 'entity_index i', where, covered: [], time: ['i.created', 'i.entity'] }
  const order = part('i.value, i.created, i.entity')
  const own = { scan, all: where, matching: where, order, slice: SLICE }
  yield* pass(db, { ...own, asked: [part('i.value')], first: 'i.entity' })
}

/** How many entities have values of a field, as the index has it. */
export async function countWithValues(db: Db, { field, path, single }: FieldTarget): Promise<number> {
  const counted = single ? '*' : 'distinct entity'
  const sql = `select count(${counted}) from entity_index where field = ? and path = ?`
  return Number((await db.ask(sql, [field.number, path]))[0]![0])
}

async function* pass(db: Db, { scan, all, matching, order, asked, first, slice }: Pass): AsyncGenerator<Row[]> {
  const { sql: columns } = order
  const groups = asked.map((_, at) => at + 1).join(', ')
  const what = list([...asked, part(`count(*), min(${first})`)])
  for (let after: Part[] = []; ; ) {
    const rest = and([all, ...after])
    const [end] = await db.ask(
      `select ${columns} from ${scan.from} where ${rest.sql} order by ${columns} limit 1 offset ?`,
      [...rest.params, slice - 1],
    )
    const upTo = end ? [part(`(${columns}) <= (${end.map(() => '?').join(', ')})`, ...end)] : []
    const where = and([matching, ...after, ...upTo])
    const sql = `select ${what.sql} from ${scan.from} where ${where.sql} group by ${groups}`
    yield (await db.ask(sql, [...what.params, ...where.params])) as Row[]
    if (!end) return
    after = [part(`(${columns}) > (${end.map(() => '?').join(', ')})`, ...end)]
    await new Promise(setImmediate)
  }
}
