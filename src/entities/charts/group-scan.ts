import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { chooseTimeOrderedScan } from '../query/access-path'
import { thresholds } from '../query/cardinality'
import { IdSet, scanIds, VALUE_ORDER } from '../query/id-set'
import type { Query } from '../query/query-parser'
import { countRows, splitIntoRanges } from '../query/ranges'
import { createRowFilter, type RowFilter, toColumnsOf } from '../query/row-filter'
import { type ScanPassage, toPassage } from '../query/scans'
import type { FieldTarget } from '../query/sql-conditions'
import { and, commaList, fragment, oneOf, type SqlFragment } from '../store/sql-fragments'

/** A value for each selected expression, the number of entities that have all these values, and the first of them. */
export type ScannedRow = [...values: (string | number | null)[], count: number, first: number]

const LARGE_ENTITIES_PER_READ = 100 // entities per slice when each row has a list or document, which may be large

type GroupScan = ScanPassage & { selected: SqlFragment[]; filter?: RowFilter }

/** Yields the selected values of the matching entities, slice by slice. Only one slice is in memory at a time. */
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
    filter: createRowFilter(model, query),
    size: large ? Math.min(LARGE_ENTITIES_PER_READ, thresholds.rows) : thresholds.rows,
  })
}

/** Yields the values of a field from the index alone, without entities that have no value. */
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

/** Returns how many entities have values of a field, by the index. */
export async function countWithValues(db: Db, target: FieldTarget): Promise<number> {
  const where = fragment('i.field = ? and i.path = ?', target.field.number, target.path)
  const rows = { from: 'entity_index i', where, by: VALUE_ORDER }
  if (target.single) return countRows(db, rows)
  const ids = new IdSet()
  for await (const entities of scanIds(db, { ...rows, entity: 'i.entity' })) for (const id of entities) ids.add(id)
  return ids.size
}

/** Returns the SQL that selects an expression from the entity of an index row. */
const selectOfEntity = ({ sql, params }: SqlFragment) =>
  fragment(`(select ${sql} from entities e where e.seq = i.entity)`, ...params)

async function* scanGroups(
  db: Db,
  { matching, selected, entity, filter, ...rows }: GroupScan,
): AsyncGenerator<ScannedRow[]> {
  const selectList = commaList([...selected, fragment(`count(*), min(${entity})`)])
  const groups = selected.map((_, at) => at + 1).join(', ')
  for await (const { conditions } of splitIntoRanges(db, rows)) {
    const inRange = and([...conditions, matching])
    const accepted = filter && (await findAccepted(db, { ...rows, entity, where: inRange }, filter))
    if (accepted?.length === 0) continue
    const where = and([inRange, ...(accepted ? [oneOf(entity, accepted)] : [])])
    const sql = `select ${selectList.sql} from ${rows.from} where ${where.sql} group by ${groups}`
    yield (await db.query(sql, [...selectList.params, ...where.params])) as ScannedRow[]
  }
}

/** Returns the numbers of the entities of a slice that pass a filter. */
async function findAccepted(
  db: Db,
  { from, where: { sql, params }, entity }: Pick<ScanPassage, 'from' | 'where' | 'entity'>,
  filter: RowFilter,
): Promise<number[]> {
  const columns = toColumnsOf(from, filter).join(', ')
  const read = await db.query(`select ${entity}, ${columns} from ${from} where ${sql}`, params)
  const accepted = await filter.test(db, read, 1)
  return read.filter((_, n) => accepted[n]).map(([seq]) => Number(seq))
}
