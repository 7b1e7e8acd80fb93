import type { CompoundIndex } from '../../blueprints/field-indexes'
import type { Model, ModelField } from '../../blueprints/model'
import type { Db, Tx } from '../../storage/port'
import { valueSql } from '../query/sql-conditions'
import { toFieldTarget } from '../query/target'
import { compoundPathSql, MAX_WHOLE_PATH_CHARACTERS, toCompoundPath } from '../store/compound-keys'
import { INSERT_INDEX_ROW } from '../store/rows'
import { and, commaList, fragment, type SqlFragment } from '../store/sql-fragments'

/** Where a row of an index lies, without the number of the index. */
export type RowPlace = [path: string, value: string, created: number, entity: number]

/** The rows that entities have in an index. `entities` is the SQL for some of them (`e`). */
export type IndexRows = {
  /** Returns where the rows lie, those with long paths only about. */
  readPlaces(db: Pick<Db, 'query'>, entities: SqlFragment): Promise<RowPlace[]>
  /** Inserts the rows, unless they exist. */
  insert(tx: Tx, entities: SqlFragment): Promise<unknown>
}

/** Returns the rows of the index of a field. */
export function fieldRows(model: Model, field: ModelField): IndexRows {
  const value = valueSql(toFieldTarget(model, field))
  const select = ({ sql, params }: SqlFragment) =>
    fragment(
      `select '' as path, r.value, r.created, r.seq from (
         select ${value.sql} as value, e.created, e.seq from entities e where ${sql}
       ) as r where r.value is not null`,
      ...value.params,
      ...params,
    )
  return {
    readPlaces: (db, entities) => readSelected(db, select(entities)),
    insert: (tx, entities) => insertSelected(tx, field.number, select(entities)),
  }
}

/** Returns the rows of a compound index, or undefined when one of its fields is gone. */
export function compoundRows(model: Model, { number, equal, order }: CompoundIndex): IndexRows | undefined {
  const sqlOf = (part: number | string | null): SqlFragment | undefined => {
    if (part === null) return fragment("''")
    if (typeof part === 'string') return fragment(`e."${part}"`)
    const field = model.fields.find(({ number }) => number === part)
    return field && valueSql(toFieldTarget(model, field))
  }
  const values = [...equal, order].map(sqlOf)
  if (!values.every((value) => value !== undefined)) return
  const keys = equal.map((_, n) => `r.key${n}`)
  const names = [...equal.map((_, n) => `key${n}`), 'sorted']
  const selected = commaList(values.map(({ sql, params }, n) => fragment(`${sql} as ${names[n]}`, ...params)))
  const path = compoundPathSql(keys, 'r.sorted')
  const select = (columns: string, { sql, params }: SqlFragment, length = '') =>
    fragment(
      `select ${columns} from (select ${selected.sql}, e.created, e.seq from entities e where ${sql}) as r
       where ${and(keys.map((key) => fragment(`${key} is not null`))).sql}${length && ` and length(${path}) ${length}`}`,
      ...selected.params,
      ...params,
    )
  const places = `${path} as path, coalesce(r.sorted, '') as value, r.created, r.seq`
  return {
    readPlaces: (db, entities) => readSelected(db, select(places, entities)),
    async insert(tx, entities) {
      await insertSelected(tx, number, select(places, entities, `<= ${MAX_WHOLE_PATH_CHARACTERS}`))
      const columns = `${keys.join(', ')}, r.sorted, r.created, r.seq`
      const long = select(columns, entities, `> ${MAX_WHOLE_PATH_CHARACTERS}`)
      const rows = (await tx.query(long.sql, long.params)).map((row) => {
        const [sorted, created, seq] = row.slice(-3) as [string | null, number, number]
        return [number, toCompoundPath(row.slice(0, -3) as string[], sorted === null), sorted ?? '', created, seq]
      })
      await tx.executeMany(`${INSERT_INDEX_ROW} on conflict do nothing`, rows)
    },
  }
}

const readSelected = async (db: Pick<Db, 'query'>, { sql, params }: SqlFragment) =>
  (await db.query(sql, params)) as RowPlace[]

const insertSelected = (tx: Tx, number: number, { sql, params }: SqlFragment) =>
  tx.query(
    `insert into entity_index (field, path, value, created, entity)
     select ${number}, s.path, s.value, s.created, s.seq from (${sql}) as s order by 2, 3, 4, 5 on conflict do nothing`,
    params,
  )
