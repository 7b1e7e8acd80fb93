import type { Model } from '../../blueprints/model'
import { type Awaitable, andThen } from '../../core/awaitable'
import { queryAtOnce } from '../../storage/db'
import type { Db, Tx } from '../../storage/port'
import type { IndexRow } from './index-keys'
import { type EntityHeader, idSql, parseOwners, shownColumnSql, shownInForceSql } from './serializer'

/** The columns of an entity in a response. */
export type ShownRow = [shown: string, user: string | null, workspace: string | null, version: number, updated: number]

/** The latest version of an entity: its history, its number there, and its row, which an entity without changes lacks. */
export type LatestVersion = { history: number | null; versionNumber: number | null; versionRow: number | null }

/** A stored entity. */
export type StoredEntity = EntityHeader & LatestVersion & { seq: number; shown: string; keys: string; version: number }

const selectByName = (columns: string) => ({
  byIdentifier: `select ${columns} from entities where blueprint = ? and identifier = ?`,
  byId: `select ${columns} from entities where blueprint = ? and _id = ?`,
})
/** Reading one text is faster than reading its parts. */
const selectShownBy = (shown: string) => selectByName(`concat(version, '\n', ${shown})`)
/** The columns of `LatestVersion`. */
export const LATEST_VERSION_COLUMNS = 'history, version_number, version_row'
const columnsFor = (shown: string) =>
  `seq, ${idSql()}, identifier, "user", workspace, ${shown}, keys, version, created, updated, ${LATEST_VERSION_COLUMNS}`
/** Returns the columns of a stored entity in the table `entities`, for `toStored`. */
export const storedColumns = (model: Model) => columnsFor(shownColumnSql(model, ''))
/** The columns of a stored entity when the blueprint is not known. */
export const storedColumnsInForce = columnsFor(shownInForceSql())

type Statements = ReturnType<typeof selectByName>
const statementsByModel = new WeakMap<Model, { shown: Statements; stored: Statements }>()

/** Returns the statements that read an entity, which differ only during an alteration. */
function getStatements(model: Model) {
  const existing = statementsByModel.get(model)
  if (existing) return existing
  const statements = { shown: selectShownBy(shownColumnSql(model, '')), stored: selectByName(storedColumns(model)) }
  statementsByModel.set(model, statements)
  return statements
}

/** Reads an entity for a response, by identifier or else by `_id`, synchronously where the engine can. */
export const readShown = (db: Db, model: Model, name: string): Awaitable<ShownRow | undefined> =>
  andThen(readByName<[string]>(db, getStatements(model).shown, model.code, name), (row) => row && toShownRow(row[0]))

function toShownRow(text: string): ShownRow {
  const versionEnd = text.indexOf('\n')
  const shown = text.slice(versionEnd + 1)
  const { user, workspace, updated } = parseOwners(shown)
  return [shown, user, workspace, Number(text.slice(0, versionEnd)), updated]
}

/** Reads an entity in order to change it, by identifier or else by `_id`. */
export async function readStored(tx: Db, model: Model, name: string): Promise<StoredEntity | undefined> {
  const row = await readByName<unknown[]>(tx, getStatements(model).stored, model.code, name)
  return row && toStored(row)
}

/** Reads some columns of an entity, by identifier or else by `_id`. */
export const readColumns = (db: Db, { code }: Model, name: string, columns: string) =>
  readByName<unknown[]>(db, selectByName(columns), code, name)

/** Returns the entity of a row that begins with `storedColumns`. */
export function toStored(row: unknown[]): StoredEntity {
  const [seq, _id, identifier, user, workspace, shown, keys, version, created, updated, ...latest] = row
  const [history, versionNumber, versionRow] = latest
  return {
    ...{ seq, _id, identifier, user, workspace, shown, keys, version, created, updated },
    ...{ history, versionNumber, versionRow },
  } as StoredEntity
}

function readByName<Row>(db: Db, sql: Statements, code: string, name: string): Awaitable<Row | undefined> {
  if (name.includes('\0')) return
  return andThen(queryAtOnce(db, sql.byIdentifier, [code, name]), ([row]) =>
    row ? (row as Row) : andThen(queryAtOnce(db, sql.byId, [code, name]), ([row]) => row as Row | undefined),
  )
}

/** Inserts a row of the index with its entity's time and number. */
export const INSERT_INDEX_ROW = 'insert into entity_index (field, path, value, created, entity) values (?, ?, ?, ?, ?)'
export const DELETE_INDEX_ROW =
  'delete from entity_index where field = ? and path = ? and value = ? and created = ? and entity = ?'

/** Returns index rows completed by their entity's time and number. */
export const withEntity = ({ created, seq }: Pick<StoredEntity, 'created' | 'seq'>, rows: IndexRow[]) =>
  rows.map((one) => [...one, created, seq])

/** Deletes rows from the index, then inserts others. */
export const writeIndexRows = (tx: Tx, removedRows: unknown[][], addedRows: unknown[][]) =>
  Promise.all([tx.executeMany(DELETE_INDEX_ROW, removedRows), tx.executeMany(INSERT_INDEX_ROW, addedRows)])

/** Returns the rows that only the first list has, and those that only the second has. */
export function diffRows(one: IndexRow[], other: IndexRow[]): [IndexRow[], IndexRow[]] {
  // Most rows are the same, and in the same places.
  if (one.length === other.length) {
    const differing = one.flatMap((row, n) => (isSameRow(row, other[n]!) ? [] : [n]))
    if (!differing.length) return [[], []]
    if (differing.length < one.length)
      return diffRows(
        differing.map((n) => one[n]!),
        differing.map((n) => other[n]!),
      )
  }
  const name = (row: IndexRow) => row.join('\u0000')
  const [left, right] = [new Set(one.map(name)), new Set(other.map(name))]
  return [one.filter((row) => !right.has(name(row))), other.filter((row) => !left.has(name(row)))]
}

const isSameRow = (one: IndexRow, other: IndexRow) => one[2] === other[2] && one[0] === other[0] && one[1] === other[1]
