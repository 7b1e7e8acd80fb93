import type { Model } from '../../blueprints/model'
import type { Reach } from '../../blueprints/rules'
import type { Db } from '../../storage/port'
import { and, type FieldTarget, list, type Part, part } from '../conditions'
import type { Query } from '../query'
import { ROWS_OF_SLICE, rangesOf } from '../ranges'
import { alone } from '../scans'
import { scanOf } from '../way'

/** A text (or null) for each thing asked, how many entities agree in all of them, and the first of these. */
export type Row = [...texts: (string | number | null)[], count: number, first: number]

const LARGE = 100 // where each has a list or a document, which may be as long as a body

/** What is gone through, in the order of which columns, and what is asked of the rows that match. */
type Pass = { from: string; all: Part; matching: Part; order: string; asked: Part[]; first: string; slice: number }

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
  const { from, where: all } = alone(scan, reach, [])
  const { where: matching } = alone(scan, reach, query.conditions)
  const [order, first, slice] = [scan.time.join(', '), scan.time[1], large ? LARGE : ROWS_OF_SLICE]
  const values = from === 'entities e' ? asked : asked.map(ofEntity)
  yield* pass(db, { from, all, matching, order, asked: values, first, slice })
}

/** The values of a field, from the index alone; of entities without any there is nothing. */
export async function* valuesBySlices(db: Db, { field, path }: FieldTarget): AsyncGenerator<Row[]> {
  const all = part('i.field = ? and i.path = ?', field.number, path)
  const [order, asked] = ['i.value, i.created, i.entity', [part('i.value')]]
  yield* pass(db, { from: 'entity_index i', all, matching: all, order, asked, first: 'i.entity', slice: ROWS_OF_SLICE })
}

/** How many entities have values of a field, as the index has it. */
export async function countWithValues(db: Db, { field, path, single }: FieldTarget): Promise<number> {
  const counted = single ? '*' : 'distinct entity'
  const sql = `select count(${counted}) from entity_index where field = ? and path = ?`
  return Number((await db.ask(sql, [field.number, path]))[0]![0])
}

/** What is asked of the entity of a row of the index. */
const ofEntity = ({ sql, params }: Part) => part(`(select ${sql} from entities e where e.seq = i.entity)`, ...params)

async function* pass(db: Db, { from, all, matching, order, asked, first, slice }: Pass): AsyncGenerator<Row[]> {
  const what = list([...asked, part(`count(*), min(${first})`)])
  const groups = asked.map((_, at) => at + 1).join(', ')
  for await (const range of rangesOf(db, { from, where: all, order, size: slice })) {
    const where = and([matching, ...range])
    const sql = `select ${what.sql} from ${from} where ${where.sql} group by ${groups}`
    yield (await db.ask(sql, [...what.params, ...where.params])) as Row[]
  }
}
