import { isAltering, type Model, pendingModelOf } from '../../blueprints/model'
import type { Caller } from '../../blueprints/permissions'
import { now } from '../../core/clock'
import type { Tx } from '../../storage/port'
import { appendChanges, IS_LOGGED, type LoggedEntity } from '../changes/change-log'
import { IS_SEARCHED, replaceTerms } from '../search/search-index'
import { toSearchTerms } from '../search/tokenizer'
import type { ComputedDoc, Doc } from '../store/doc'
import { type IndexKeys, toIndexKeys, toIndexRows } from '../store/index-keys'
import { diffRows, type ShownRow, type StoredEntity, withEntity, writeIndexRows } from '../store/rows'
import { type EntityHeader, extractDocumentJson, toStoredJson } from '../store/serializer'
import {
  assertReferencesExist,
  assertSize,
  assertUnique,
  type BlueprintFeatures,
  type ReadableScopes,
  requireFreshBlueprint,
} from './constraints'
import { emitEntityEvents } from './entity-events'
import { assertWithinLimits } from './limitations'

const updateSql = (mark = '') =>
  `update entities set "user" = ?, workspace = ?, shown = ?, keys = ?, version = ?, updated = ?${mark} where seq = ?`
const UPDATE = updateSql()
// What is written while a change of its blueprint is being prepared has to be prepared for it.
const UPDATE_MARKED = updateSql(', altered = null, form = -1')
const UPDATE_CLEAN = updateSql(', altered = null, form = null')

const getUpdateSql = (model: Model) =>
  pendingModelOf(model) ? UPDATE_MARKED : isAltering(model) ? UPDATE_CLEAN : UPDATE

type EntityUpdate = { doc: ComputedDoc; comparable: Doc; by: Caller | undefined } & Partial<
  Pick<EntityHeader, 'user' | 'workspace'>
>

/** Replaces an entity's document and owners, and such rows of the index as differ. */
export async function updateEntity(
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

/** Puts an entity back as it was, if it is still there, without any check: it is as if nothing had happened. */
export async function restoreEntity(tx: Tx, model: Model, before: StoredEntity) {
  const select = `select shown, keys, ${IS_SEARCHED}, ${IS_LOGGED} from entities where seq = ?`
  const [row] = (await tx.query(select, [model.key, model.key, before.seq])) as [string, string, unknown, unknown][]
  if (!row) return
  const [shown, keys, searched, logged] = row
  const observed = { searched: !!searched, logged: !!logged }
  await Promise.all([replaceEntity(tx, model, { shown, keys }, before, observed), emitUpdate(tx, model, before)])
}
