import { isAltering, type Model, pendingModelOf } from '../../blueprints/model'
import type { Caller } from '../../blueprints/permissions'
import { now } from '../../core/clock'
import type { Db, Tx } from '../../storage/port'
import { appendChanges, appendRemovals, IS_LOGGED, type LoggedEntity } from '../changes/change-log'
import { IS_SEARCHED, removeTerms, replaceTerms } from '../search/search-index'
import { toSearchTerms } from '../search/tokenizer'
import {
  assertReferencesExist,
  assertSize,
  assertUnique,
  type BlueprintFeatures,
  type ReadableScopes,
  requireFreshBlueprint,
} from '../write/constraints'
import { emitEntityEvents } from '../write/entity-events'
import { assertWithinLimits } from '../write/limitations'
import type { ComputedDoc, Doc } from './doc'
import { type IndexKeys, type IndexRow, toIndexKeys, toIndexRows } from './index-keys'
import { type EntityHeader, extractDocumentJson, shownColumnSql, shownInForceSql, toStoredJson } from './serializer'
import { takeWithinSize } from './sql-fragments'

/** What is read to show one entity, in the order of `SHOWN`. */
export type ShownRow = [shown: string, user: string | null, workspace: string | null, version: number, updated: number]

/** An entity as it is kept. */
export type StoredEntity = EntityHeader & { seq: number; shown: string; keys: string; version: number }

const selectByName = (columns: string) => ({
  byIdentifier: `select ${columns} from entities where blueprint = ? and identifier = ?`,
  byId: `select ${columns} from entities where blueprint = ? and _id = ?`,
})
const selectShownBy = (shown: string) => selectByName(`${shown}, "user", workspace, version, updated`)
const columnsFor = (shown: string) =>
  `seq, _id, identifier, "user", workspace, ${shown}, keys, version, created, updated`
const SELECT_SHOWN = selectShownBy('shown')
const SELECT_STORED = selectByName(columnsFor('shown'))
/** The columns of a row as it is kept, in the table `entities`. */
export const storedColumns = (model: Model) => columnsFor(shownColumnSql(model, ''))
/** The same for whoever does not know the blueprint. */
export const storedColumnsInForce = columnsFor(shownInForceSql())

/** An entity's row by identifier or else by `_id`, to be shown. */
export const readShown = (db: Db, model: Model, name: string) =>
  readByName<ShownRow>(db, isAltering(model) ? selectShownBy(shownColumnSql(model, '')) : SELECT_SHOWN, model.key, name)

/** The same, to be changed. */
export async function readStored(tx: Db, model: Model, name: string): Promise<StoredEntity | undefined> {
  const row = await readByName<unknown[]>(
    tx,
    isAltering(model) ? selectByName(storedColumns(model)) : SELECT_STORED,
    model.key,
    name,
  )
  return row && toStored(row)
}

/** A row of `storedColumns`. */
export function toStored(row: unknown[]): StoredEntity {
  const [seq, _id, identifier, user, workspace, shown, keys, version, created, updated] = row
  return { seq, _id, identifier, user, workspace, shown, keys, version, created, updated } as StoredEntity
}

async function readByName<Row>(db: Db, sql: typeof SELECT_SHOWN, key: string, name: string): Promise<Row | undefined> {
  if (name.includes('\0')) return
  const [row] = await db.query(sql.byIdentifier, [key, name])
  return (row ?? (await db.query(sql.byId, [key, name]))[0]) as Row | undefined
}

const updateSql = (mark = '') =>
  `update entities set "user" = ?, workspace = ?, shown = ?, keys = ?, version = ?, updated = ?${mark} where seq = ?`
const UPDATE = updateSql()
// What is written while a change of its blueprint is being prepared has to be prepared for it.
const UPDATE_MARKED = updateSql(', altered = null, form = -1')
const UPDATE_CLEAN = updateSql(', altered = null, form = null')

const getUpdateSql = (model: Model) =>
  pendingModelOf(model) ? UPDATE_MARKED : isAltering(model) ? UPDATE_CLEAN : UPDATE

/** A row of the index with its entity's time and number. */
export const INSERT_INDEX_ROW = 'insert into entity_index (field, path, value, created, entity) values (?, ?, ?, ?, ?)'
export const DELETE_INDEX_ROW =
  'delete from entity_index where field = ? and path = ? and value = ? and created = ? and entity = ?'

type EntityUpdate = { doc: ComputedDoc; comparable: Doc; by: Caller | undefined } & Partial<
  Pick<EntityHeader, 'user' | 'workspace'>
>

/** Replaces an entity's document and owners, and such rows of the index as differ. */
export async function update(
  tx: Tx,
  model: Model,
  before: StoredEntity,
  { doc, comparable, by, user = before.user, workspace = before.workspace }: EntityUpdate,
  readableScopes: ReadableScopes,
): Promise<ShownRow> {
  const [old, keys] = [JSON.parse(before.keys) as IndexKeys, toIndexKeys(model, doc)]
  const observed = await requireFreshBlueprint(tx, model)
  await assertWithinLimits(tx, model, { user, workspace }, keys, by, old)
  await assertUnique(tx, model, keys, by, old)
  await assertReferencesExist(tx, model, doc, comparable, readableScopes)
  const [text, updated, version] = [JSON.stringify(doc), now(), before.version + 1]
  assertSize(text)
  const shown = toStoredJson({ ...before, user, workspace, updated }, text)
  const after = { ...before, user, workspace, shown, keys: JSON.stringify(keys), version, updated }
  await Promise.all([replaceEntity(tx, model, before, after, observed), emitUpdate(tx, model, after, by)])
  return [shown, user, workspace, version, updated]
}

/** Keeps an entity that was there otherwise before. In order, but waited for together: one trip. */
export async function replaceEntity(
  tx: Tx,
  model: Model,
  before: LoggedEntity,
  row: StoredEntity,
  { searched, logged }: BlueprintFeatures,
) {
  const { seq, user, workspace, shown, keys, version, updated } = row
  const old = JSON.parse(before.keys) as IndexKeys
  // There may be rows of fields that are not in force yet, or not any more.
  const [removedRows, addedRows] = diffRows(
    toIndexRows(isAltering(model) ? undefined : model, old),
    toIndexRows(model, JSON.parse(keys)),
  )
  if (searched) replaceTerms(tx, [[seq, toSearchTerms(model, JSON.parse(extractDocumentJson(shown)))]])
  await Promise.all([
    writeIndexRows(tx, withEntity(row, removedRows), withEntity(row, addedRows)),
    tx.query(getUpdateSql(model), [user, workspace, shown, keys, version, updated, seq]),
    logged && appendChanges(tx, model.key, [{ before, after: { shown, keys } }]),
  ])
}

const emitUpdate = async (tx: Tx, model: Model, row: StoredEntity, actor?: Caller) =>
  model.dispatchers?.update && emitEntityEvents(tx, { tenant: model.tenant, actor }, 'update', model.key, [row])

/** Puts an entity back as it was, if it is still there. Nobody is asked: it is as if nothing had happened. */
export async function restore(tx: Tx, model: Model, before: StoredEntity) {
  const select = `select shown, keys, ${IS_SEARCHED}, ${IS_LOGGED} from entities where seq = ?`
  const [row] = (await tx.query(select, [model.key, model.key, before.seq])) as [string, string, unknown, unknown][]
  if (!row) return
  const [shown, keys, searched, logged] = row
  const observed = { searched: !!searched, logged: !!logged }
  await Promise.all([replaceEntity(tx, model, { shown, keys }, before, observed), emitUpdate(tx, model, before)])
}

/** The first of these entities, as many as are good to be removed by one write, and at least one. */
export const takeBatch = <Row extends Pick<StoredEntity, 'keys'>>(entities: Row[]): Row[] =>
  takeWithinSize(entities, MAX_STATEMENTS_PER_WRITE, ({ keys }) => 1 + toIndexRows(undefined, JSON.parse(keys)).length)

/** Removes entities with their rows of the index, whatever their blueprint says by now. */
export async function deleteRows(tx: Tx, entities: Pick<StoredEntity, 'seq' | 'keys' | 'created'>[]) {
  const rows = entities.flatMap(({ seq, keys, created }) =>
    toIndexRows(undefined, JSON.parse(keys)).map((row) => [...row, created, seq]),
  )
  const seqs = entities.map(({ seq }) => seq)
  await appendRemovals(tx, seqs)
  await Promise.all([
    tx.executeMany(DELETE_INDEX_ROW, rows),
    removeTerms(tx, seqs),
    tx.executeMany(
      'delete from entities where seq = ?',
      seqs.map((seq) => [seq]),
    ),
  ])
}

/** Rows of the index with the entity that they lead to. */
export const withEntity = ({ created, seq }: Pick<StoredEntity, 'created' | 'seq'>, rows: IndexRow[]) =>
  rows.map((one) => [...one, created, seq])

/** Takes some rows out of the index, then puts others in. */
export const writeIndexRows = (tx: Tx, removedRows: unknown[][], addedRows: unknown[][]) =>
  Promise.all([tx.executeMany(DELETE_INDEX_ROW, removedRows), tx.executeMany(INSERT_INDEX_ROW, addedRows)])

const MAX_STATEMENTS_PER_WRITE = 4_000 // in one write of many

/** The rows that only one of the two has. */
export function diffRows(one: IndexRow[], other: IndexRow[]): [IndexRow[], IndexRow[]] {
  const name = (row: IndexRow) => row.join('\u0000')
  const [left, right] = [new Set(one.map(name)), new Set(other.map(name))]
  return [one.filter((row) => !right.has(name(row))), other.filter((row) => !left.has(name(row)))]
}
