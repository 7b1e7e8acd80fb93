import type { CompoundIndex } from '../../blueprints/field-indexes'
import type { Model, ModelField } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { valueSql } from '../query/sql-conditions'
import { toFieldTarget } from '../query/target'
import { toCompoundPath } from '../store/compound-keys'
import { commaList, fragment, type SqlFragment } from '../store/sql-fragments'

/** A row of an index, and which state of its entity it is of. */
export type EntityRow = { path: string; value: string; created: number; entity: number; state: string }

/** Reads the rows that entities (`e`) have in an index. */
export type ReadRows = (db: Pick<Db, 'query'>, entities: SqlFragment) => Promise<EntityRow[]>

/** SQL for the state of an entity (`e`), which no two states of it share. */
export const STATE_SQL = "concat(e.version, ' ', e.updated)"

/** Returns how the rows of the index of a field are read. */
export function fieldReader(model: Model, field: ModelField): ReadRows {
  const value = valueSql(toFieldTarget(model, field))
  return (db, entities) => readValues(db, entities, [value], ([value]) => value !== null && ['', value!])
}

/** Returns how the rows of a compound index are read, or undefined when one of its fields is gone. */
export function compoundReader(model: Model, { equal, order }: CompoundIndex): ReadRows | undefined {
  const sqlOf = (part: number | string | null): SqlFragment | undefined => {
    if (part === null) return fragment("''")
    if (typeof part === 'string') return fragment(`e."${part}"`)
    const field = model.fields.find(({ number }) => number === part)
    return field && valueSql(toFieldTarget(model, field))
  }
  const values = [...equal, order].map(sqlOf)
  if (!values.every((value) => value !== undefined)) return
  return (db, entities) =>
    readValues(db, entities, values, (found) => {
      const [keys, sorted] = [found.slice(0, -1), found.at(-1)!]
      return keys.every((key) => key !== null) && [toCompoundPath(keys, sorted === null), sorted ?? '']
    })
}

async function readValues(
  db: Pick<Db, 'query'>,
  { sql, params }: SqlFragment,
  values: SqlFragment[],
  toPlace: (values: (string | null)[]) => [path: string, value: string] | false,
): Promise<EntityRow[]> {
  const selected = commaList(values)
  const rows = await db.query(`select ${selected.sql}, e.created, e.seq, ${STATE_SQL} from entities e where ${sql}`, [
    ...selected.params,
    ...params,
  ])
  return rows.flatMap((row) => {
    const place = toPlace(row.slice(0, values.length) as (string | null)[])
    const [created, entity, state] = row.slice(values.length) as [number, number, string]
    return place ? { path: place[0], value: place[1], created: Number(created), entity: Number(entity), state } : []
  })
}
