import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { chooseTimeOrderedScan } from '../query/access-path'
import { thresholds } from '../query/cardinality'
import { IdSet, scanIds, VALUE_ORDER } from '../query/id-set'
import type { Query } from '../query/query-parser'
import { countRows, splitIntoRanges } from '../query/ranges'
import { type ScanPassage, toPassage } from '../query/scans'
import type { FieldTarget } from '../query/sql-conditions'
import { and, commaList, fragment, type SqlFragment } from '../store/sql-fragments'

/** A text (or null) for each thing asked, how many entities agree in all of them, and the first of these. */
export type ScannedRow = [...texts: (string | number | null)[], count: number, first: number]

const LARGE_ENTITIES_PER_READ = 100 // where each has a list or a document, which may be as long as a body

type GroupScan = ScanPassage & { selected: SqlFragment[] }

/** What entities that match have, a slice after the other. Nothing but one slice is ever in memory. */
export async function* scanEntities(
  db: Db,
  model: Model,
  rowScope: RowScope,
  query: Query,
  selected: SqlFragment[],
  large = false,
): AsyncGenerator<ScannedRow[]> {
  const scan = await chooseTimeOrderedScan(db, model, rowScope, query)
  const passage = toPassage(model, scan, rowScope, query.conditions)
  const values = passage.from.startsWith('entity_index') ? selected.map(selectOfEntity) : selected
  yield* scanGroups(db, {
    ...passage,
    selected: values,
    size: large ? Math.min(LARGE_ENTITIES_PER_READ, thresholds.rows) : thresholds.rows,
  })
}

/** The values of a field, from the index alone; of entities without any there is nothing. */
export async function* scanValues(db: Db, { field, path }: FieldTarget): AsyncGenerator<ScannedRow[]> {
  const fieldRows = fragment('i.field = ? and i.path = ?', field.number, path)
  const [by, selected] = [VALUE_ORDER, [fragment('i.value')]]
  yield* scanGroups(db, {
    from: 'entity_index i',
    where: fieldRows,
    matching: fieldRows,
    by,
    selected,
    entity: 'i.entity',
  })
}

/** How many entities have values of a field, as the index has it. */
export async function countWithValues(db: Db, target: FieldTarget): Promise<number> {
  const where = fragment('i.field = ? and i.path = ?', target.field.number, target.path)
  const rows = { from: 'entity_index i', where, by: VALUE_ORDER }
  if (target.single) return countRows(db, rows)
  const ids = new IdSet()
  for await (const entities of scanIds(db, { ...rows, entity: 'i.entity' })) for (const id of entities) ids.add(id)
  return ids.size
}

/** What is asked of the entity of a row of the index. */
const selectOfEntity = ({ sql, params }: SqlFragment) =>
  fragment(`(select ${sql} from entities e where e.seq = i.entity)`, ...params)

async function* scanGroups(db: Db, { matching, selected, entity, ...rows }: GroupScan): AsyncGenerator<ScannedRow[]> {
  const selectList = commaList([...selected, fragment(`count(*), min(${entity})`)])
  const groups = selected.map((_, at) => at + 1).join(', ')
  for await (const { conditions } of splitIntoRanges(db, rows)) {
    const where = and([matching, ...conditions])
    const sql = `select ${selectList.sql} from ${rows.from} where ${where.sql} group by ${groups}`
    yield (await db.query(sql, [...selectList.params, ...where.params])) as ScannedRow[]
  }
}
