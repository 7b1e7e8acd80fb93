import type { CompoundIndex } from '../../blueprints/field-indexes'
import type { Model, ModelField } from '../../blueprints/model'
import type { Tx } from '../../storage/port'
import { valueSql } from '../query/sql-conditions'
import { toFieldTarget } from '../query/target'
import { compoundPathSql, MAX_WHOLE_PATH_CHARACTERS, toCompoundPath } from '../store/compound-keys'
import { INSERT_INDEX_ROW } from '../store/rows'
import { and, commaList, fragment, type SqlFragment } from '../store/sql-fragments'

/** Inserts the rows that some entities (`e`) have in an index, unless they exist. */
export type InsertRows = (tx: Tx, number: number, entities: SqlFragment) => Promise<unknown>

/** Returns how the rows of a field are inserted. */
export function fieldInserter(model: Model, field: ModelField): InsertRows {
  const value = valueSql(toFieldTarget(model, field))
  return (tx, number, { sql, params }) =>
    insertSelected(
      tx,
      number,
      fragment(
        `select '' as path, r.value, r.created, r.seq from (
           select ${value.sql} as value, e.created, e.seq from entities e where ${sql}
         ) as r where r.value is not null`,
        ...value.params,
        ...params,
      ),
    )
}

/** Returns how the rows of a compound index are inserted, or undefined when one of its fields is gone. */
export function compoundInserter(model: Model, { equal, order }: CompoundIndex): InsertRows | undefined {
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
  const rowsOf = ({ sql, params }: SqlFragment, where: string) =>
    fragment(
      `(select ${selected.sql}, e.created, e.seq from entities e where ${sql}) as r
       where ${and(keys.map((key) => fragment(`${key} is not null`))).sql} and length(${path}) ${where}`,
      ...selected.params,
      ...params,
    )
  const path = compoundPathSql(keys, 'r.sorted')
  return async (tx, number, entities) => {
    const short = rowsOf(entities, `<= ${MAX_WHOLE_PATH_CHARACTERS}`)
    const columns = `${path} as path, coalesce(r.sorted, '') as value, r.created, r.seq`
    await insertSelected(tx, number, fragment(`select ${columns} from ${short.sql}`, ...short.params))
    const long = rowsOf(entities, `> ${MAX_WHOLE_PATH_CHARACTERS}`)
    const found = await tx.query(`select ${keys.join(', ')}, r.sorted, r.created, r.seq from ${long.sql}`, long.params)
    const rows = found.map((row) => {
      const [sorted, created, seq] = row.slice(-3) as [string | null, number, number]
      return [number, toCompoundPath(row.slice(0, -3) as string[], sorted === null), sorted ?? '', created, seq]
    })
    await tx.executeMany(`${INSERT_INDEX_ROW} on conflict do nothing`, rows)
  }
}

const insertSelected = (tx: Tx, number: number, { sql, params }: SqlFragment) =>
  tx.query(
    `insert into entity_index (field, path, value, created, entity)
     select ${number}, s.path, s.value, s.created, s.seq from (${sql}) as s order by 2, 3 on conflict do nothing`,
    params,
  )
