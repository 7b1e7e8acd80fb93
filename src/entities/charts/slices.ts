import type { Model } from '../../blueprints/model'
import type { Reach } from '../../blueprints/rules'
import type { Db } from '../../storage/port'
import { and, type FieldTarget, list, type Part, part } from '../conditions'
import { BY_VALUE, Members, slicesOf } from '../members'
import type { Query } from '../query'
import { countRows, rangesOf } from '../ranges'
import { type Passage, passageOf } from '../scans'
import { bounds } from '../sizes'
import { scanOf } from '../way'

/** A text (or null) for each thing asked, how many entities agree in all of them, and the first of these. */
export type Row = [...texts: (string | number | null)[], count: number, first: number]

const LARGE = 100 // where each has a list or a document, which may be as long as a body

type Pass = Passage & { asked: Part[] }

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
  const passage = passageOf(model, scan, reach, query.conditions)
  const values = passage.from.startsWith('entity_index') ? asked.map(ofEntity) : asked
  yield* pass(db, { ...passage, asked: values, size: large ? Math.min(LARGE, bounds.rows) : bounds.rows })
}

/** The values of a field, from the index alone; of entities without any there is nothing. */
export async function* valuesBySlices(db: Db, { field, path }: FieldTarget): AsyncGenerator<Row[]> {
  const all = part('i.field = ? and i.path = ?', field.number, path)
  const [by, asked] = [BY_VALUE, [part('i.value')]]
  yield* pass(db, { from: 'entity_index i', where: all, matching: all, by, asked, entity: 'i.entity' })
}

/** How many entities have values of a field, as the index has it. */
export async function countWithValues(db: Db, target: FieldTarget): Promise<number> {
  const where = part('i.field = ? and i.path = ?', target.field.number, target.path)
  const rows = { from: 'entity_index i', where, by: BY_VALUE }
  if (target.single) return countRows(db, rows)
  const members = new Members()
  for await (const entities of slicesOf(db, { ...rows, entity: 'i.entity' }))
    for (const one of entities) members.add(one)
  return members.size
}

/** What is asked of the entity of a row of the index. */
const ofEntity = ({ sql, params }: Part) => part(`(select ${sql} from entities e where e.seq = i.entity)`, ...params)

async function* pass(db: Db, { matching, asked, entity, ...rows }: Pass): AsyncGenerator<Row[]> {
  const what = list([...asked, part(`count(*), min(${entity})`)])
  const groups = asked.map((_, at) => at + 1).join(', ')
  for await (const { conditions } of rangesOf(db, rows)) {
    const where = and([matching, ...conditions])
    const sql = `select ${what.sql} from ${rows.from} where ${where.sql} group by ${groups}`
    yield (await db.ask(sql, [...what.params, ...where.params])) as Row[]
  }
}
