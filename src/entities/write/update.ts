import { readMaintainedIndexes } from '../../blueprints/field-indexes'
import { historyOf } from '../../blueprints/history'
import { isAltering, type Model, type ModelField, pendingModelOf } from '../../blueprints/model'
import type { Caller } from '../../blueprints/permissions'
import { now } from '../../core/clock'
import type { Tx } from '../../storage/port'
import { appendChanges, type LoggedEntity, toLogged } from '../changes/change-log'
import { noteChanges } from '../changes/tracked-changes'
import type { Owners } from '../history/version'
import { appendChange, SET_LATEST_VERSION, toNextVersion } from '../history/version-log'
import { replaceTerms } from '../search/search-terms'
import { toSearchTerms } from '../search/tokenizer'
import type { ComputedDoc, Doc } from '../store/doc'
import { getMaintainedIndexes, type IndexSet, toIndexKeys, toIndexRows } from '../store/index-keys'
import {
  diffRows,
  LATEST_VERSION_COLUMNS,
  type LatestVersion,
  type ShownRow,
  type StoredEntity,
  withEntity,
  writeIndexRows,
} from '../store/rows'
import { type EntityHeader, extractDocumentJson, packEntity, parseHeader, shownColumnSql } from '../store/serializer'
import { readIndexKeys, toStoredKeys } from '../store/stored-keys'
import {
  assertReferencesExist,
  assertSize,
  assertUnique,
  type BlueprintFeatures,
  FEATURES,
  type ReadableTargets,
  requireFreshBlueprint,
  toFeatures,
} from './constraints'
import { emitEntityEvents } from './entity-events'
import { assertWithinLimits } from './limitations'

const updateSql = (more: string) => {
  const set = `update entities set "user" = ?, workspace = ?, shown = ?, keys = ?, version = ?, updated = ?${more}`
  return { alone: `${set} where seq = ?`, withVersion: `${set}, ${SET_LATEST_VERSION} where seq = ?` }
}
const UPDATE = updateSql('')
// Entities that are written while an alteration is being prepared have to be prepared, too.
const UPDATE_MARKED = updateSql(', altered = null, form = -1')
const UPDATE_CLEAN = updateSql(', altered = null, form = null')

const getUpdateSql = (model: Model) =>
  pendingModelOf(model) ? UPDATE_MARKED : isAltering(model) ? UPDATE_CLEAN : UPDATE

type EntityUpdate = { doc: ComputedDoc; comparable: Doc; by: Caller | undefined } & Partial<
  Pick<EntityHeader, 'user' | 'workspace'>
>

/**
 * Replaces an entity's document and owners, and the index rows that differ. `features` are of a blueprint that was read in
 * the same transaction.
 * @throws StaleBlueprint, 403 LIMIT_REACHED, 409 UNIQUE_VIOLATION, 400
 */
export async function updateEntity(
  tx: Tx,
  model: Model,
  before: StoredEntity,
  { doc, comparable, by, user = before.user, workspace = before.workspace }: EntityUpdate,
  readable: ReadableTargets,
  features: Promise<BlueprintFeatures> = requireFreshBlueprint(tx, model),
): Promise<ShownRow> {
  const [old, keys] = [readIndexKeys(before, model), toIndexKeys(model, doc)]
  const observed = await features
  await assertWithinLimits(tx, model, { user, workspace }, keys, by, old)
  await assertUnique(tx, model, keys, by, old)
  await assertReferencesExist(tx, model, doc, comparable, readable)
  const [text, updated, version] = [JSON.stringify(doc), now(), before.version + 1]
  assertSize(text)
  const shown = packEntity({ ...before, user, workspace, updated }, text)
  const after = { ...before, user, workspace, shown, keys: toStoredKeys(model, doc, keys), version, updated }
  const emitted = emitUpdate(tx, model, { ...after, changed: listChangedKeys(model, before, doc) }, by)
  await Promise.all([replaceEntity(tx, model, before, after, observed, { author: by?.user }), emitted])
  return [shown, user, workspace, version, updated]
}

/** Who replaces an entity, and when, for its history, and the indexes that are maintained, by default those of the model. */
type Replacement = { author?: string; at?: number; maintained?: IndexSet }

/**
 * Writes an entity over its previous state. The statements run in order but are awaited together, in one round trip.
 */
export async function replaceEntity(
  tx: Tx,
  model: Model,
  before: LoggedEntity & Owners & LatestVersion & Pick<EntityHeader, 'updated'>,
  row: StoredEntity,
  { indexedUpTo, logged, tracked }: BlueprintFeatures,
  { author, at = row.updated, maintained = getMaintainedIndexes(model) }: Replacement = {},
) {
  const { seq, user, workspace, shown, keys, updated } = row
  // During an alteration, there may be rows of new or retired fields.
  const [removedRows, addedRows] = diffRows(
    toIndexRows(
      isAltering(model) ? { ...maintained, fields: undefined } : maintained,
      readIndexKeys(before, model),
      before,
    ),
    toIndexRows(maintained, readIndexKeys(row, model), row),
  )
  const text = extractDocumentJson(shown)
  const history = historyOf(model)
  const version = history && toNextVersion(history, before, row)
  if (seq <= indexedUpTo) replaceDifferingTerms(tx, model, before, row)
  if (tracked) noteChanges(tx, model.key, [seq])
  await Promise.all([
    writeIndexRows(tx, withEntity(row, removedRows), withEntity(row, addedRows)),
    // The update refers to the version that was inserted just before it.
    version && appendChange(tx, history, version, { identifier: row.identifier, at, since: before.updated, author }),
    tx.query(getUpdateSql(model)[version ? 'withVersion' : 'alone'], [
      ...[user, workspace, text, keys, row.version, updated],
      ...(version ? [history.number, version.number] : []),
      seq,
    ]),
    logged && appendChanges(tx, model.key, [{ before: toLogged(before, model), after: toLogged(row, model) }]),
  ])
}

/** Replaces the words of an entity whose texts differ. In an alteration, other words than those before may be indexed. */
function replaceDifferingTerms(tx: Tx, model: Model, before: LoggedEntity, { seq, shown }: StoredEntity) {
  const [old, doc] = [before.shown, shown].map((text) => JSON.parse(extractDocumentJson(text)) as Doc)
  const differs = ({ key, kind }: ModelField) => kind.isSearchable && !Bun.deepEquals(old![key], doc![key])
  if (model.alteration || model.fields.some(differs)) replaceTerms(tx, [[seq, toSearchTerms(model, doc!)]])
}

/** Returns the keys of the fields that differ, for the event of a change, without those that not everybody may read. */
function listChangedKeys({ dispatchers, fields }: Model, { shown }: StoredEntity, doc: Doc): string[] | undefined {
  if (!dispatchers?.update) return undefined
  const old = JSON.parse(extractDocumentJson(shown)) as Doc
  return fields
    .filter(({ key, readRoles }) => !readRoles?.length && !Bun.deepEquals(old[key], doc[key]))
    .map(({ key }) => key)
}

const emitUpdate = async (tx: Tx, model: Model, row: StoredEntity & { changed?: string[] }, actor?: Caller) =>
  model.dispatchers?.update && emitEntityEvents(tx, { tenant: model.tenant, actor }, 'update', model.key, [row])

type RestoredRow = [
  shown: string,
  keys: string,
  history: number | null,
  versionNumber: number | null,
  versionRow: number | null,
  ...features: unknown[],
]

/** Restores an entity to its previous state if it still exists, without any checks. */
export async function restoreEntity(tx: Tx, model: Model, before: StoredEntity) {
  const select = `select ${shownColumnSql(model, '')}, keys, ${LATEST_VERSION_COLUMNS}, ${FEATURES} from entities where seq = ?`
  const [row] = (await tx.query(select, [model.key, model.key, model.key, before.seq])) as RestoredRow[]
  if (!row) return
  const [shown, keys, history, versionNumber, versionRow, ...features] = row
  const current = { ...parseHeader(shown), shown, keys, history, versionNumber, versionRow }
  // An import that is undone does not notice that an index was made meanwhile.
  const maintained = await readMaintainedIndexes(tx, model.key)
  await Promise.all([
    replaceEntity(tx, model, current, before, toFeatures(features), { at: now(), maintained }),
    emitUpdate(tx, model, before),
  ])
}
