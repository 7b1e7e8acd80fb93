import type { Actor } from '../../accounts/actors'
import { type Model, pendingModelOf } from '../../blueprints/model'
import type { Caller } from '../../blueprints/permissions'
import { now } from '../../core/clock'
import type { Tx } from '../../storage/port'
import { appendChanges } from '../changes/change-log'
import { noteChanges } from '../changes/tracked-changes'
import { appendCreations } from '../history/version-log'
import { addTerms } from '../search/search-terms'
import { toSearchTerms } from '../search/tokenizer'
import type { ComputedDoc } from '../store/doc'
import { getMaintainedIndexes, type IndexKeys, type IndexRow, toIndexKeys, toIndexRows } from '../store/index-keys'
import { INSERT_INDEX_ROW, type ShownRow } from '../store/rows'
import { packEntity, toStoredId } from '../store/serializer'
import { toStoredKeys } from '../store/stored-keys'
import type { EntityIdentity } from './computed-fields'
import {
  assertIdentifierFree,
  assertReferencesExist,
  assertSize,
  assertUnique,
  type BlueprintFeatures,
  FEATURES,
  type ReadableTargets,
  requireFreshBlueprint,
  StaleBlueprint,
  toFeatures,
} from './constraints'
import { emitEntityEvents } from './entity-events'
import { assertWithinLimits } from './limitations'

// Inserts the entity only if its blueprint still has the version that it was checked against, and the same indexes.
const insertSql = (more = '', values = '') => {
  const columns = `_id, blueprint, identifier, "user", workspace, shown, keys, version, created, updated, form${more}`
  return {
    one: `insert into entities (${columns}) select ?, code, ?, ?, ?, ?, ?, 1, ?, ?, ?${values} from blueprints
      where key = ? and _id = ? and version = ? and indexing = ? returning seq, ${FEATURES}`,
    many: `insert into entities (${columns}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?${values}) returning identifier, seq`,
  }
}
const INSERT = insertSql()
const INSERT_WITH_HISTORY = insertSql(', history, version_number, creator', ', ?, ?, ?')

const getInsertSql = ({ historyNumber }: Model) => (historyNumber === null ? INSERT : INSERT_WITH_HISTORY)

/** Returns what begins the history of an entity: its creation is its first version. */
const toHistoryValues = ({ historyNumber }: Model, { by }: EntityDraft) =>
  historyNumber === null ? [] : [historyNumber, 1, by?.user ?? null]

/** Marks entities that are written while an alteration is being prepared, so that they get prepared, too. */
const backfillMark = (model: Model) => (pendingModelOf(model) ? -1 : null)

/** An entity to be created, and its author. */
export type EntityDraft = EntityIdentity & {
  doc: ComputedDoc
  keys: IndexKeys
  by: Caller | undefined
  texts?: EntityTexts
}

/** The texts of a new entity, as they are stored: its document, and the index keys that do not follow from it. */
export type EntityTexts = { model: Model; text: string; storedKeys: string }

/** An entity to be created of which the texts are known. Its values are parsed when something asks for them. */
export class TextDraft implements EntityDraft {
  readonly user: string | null
  readonly workspace: string | null
  #doc: ComputedDoc | undefined
  #keys: IndexKeys | undefined

  constructor(
    readonly texts: EntityTexts,
    readonly _id: string,
    readonly identifier: string,
    readonly by: Actor | undefined,
  ) {
    this.user = by?.user ?? null
    this.workspace = by?.workspace?._id ?? null
  }

  get doc(): ComputedDoc {
    this.#doc ??= JSON.parse(this.texts.text) as ComputedDoc
    return this.#doc
  }

  get keys(): IndexKeys {
    this.#keys ??= toIndexKeys(this.texts.model, this.doc)
    return this.#keys
  }
}

export const toEntityDraft = (
  model: Model,
  identity: EntityIdentity,
  doc: ComputedDoc,
  by: Caller | undefined,
): EntityDraft => ({ ...identity, doc, keys: toIndexKeys(model, doc), by })

/**
 * Inserts an entity with its index rows. @throws StaleBlueprint, Conflict, 403 LIMIT_REACHED, 409 UNIQUE_VIOLATION, 400
 */
export async function insertEntity(
  tx: Tx,
  model: Model,
  draft: EntityDraft,
  readable: ReadableTargets,
): Promise<InsertedEntity> {
  const prepared = prepareEntity(model, draft)
  const { doc, keys, by } = draft
  await assertIdentifierFree(tx, model, draft)
  await assertWithinLimits(tx, model, draft, keys, by)
  await assertUnique(tx, model, keys, by)
  await assertReferencesExist(tx, model, doc, {}, readable)
  const [added] = await insertPrepared(tx, model, [prepared])
  return added!
}

export type InsertedEntity = { seq: number; row: ShownRow }

/** An entity in the form in which it is inserted, with its index rows. */
export type PreparedEntity = { time: number; text: string; shown: string; draft: EntityDraft; index: IndexRow[] }

/** @throws 400 for an entity that is too large */
export function prepareEntity(model: Model, draft: EntityDraft, time = now()): PreparedEntity {
  const { _id, identifier, user, workspace, texts } = draft
  const text = texts?.text ?? JSON.stringify(draft.doc)
  const indexes = getMaintainedIndexes(model)
  const isIndexed = indexes.fields.size > 0 || indexes.compound.length > 0
  const index = isIndexed ? toIndexRows(indexes, draft.keys, draft) : []
  assertSize(text)
  const shown = packEntity({ _id, identifier, user, workspace, created: time, updated: time }, text)
  return { time, text, shown, draft, index }
}

/** Inserts entities that have passed all checks. @throws StaleBlueprint, Conflict */
export async function insertPrepared(tx: Tx, model: Model, prepared: PreparedEntity[]): Promise<InsertedEntity[]> {
  const [first, ...others] = prepared
  const { seqs, indexedUpTo, logged, tracked } = await (first && !others.length
    ? insertRow(tx, model, first)
    : insertRows(tx, model, prepared))
  const index = prepared.flatMap(({ time, index }, n) => index.map((row) => [...row, time, seqs[n]]))
  await Promise.all([
    tx.executeMany(INSERT_INDEX_ROW, others.length ? groupByField(index) : index),
    model.historyNumber !== null && appendCreations(tx, model, toCreated(prepared, seqs)),
  ])
  addTerms(
    tx,
    prepared.flatMap(({ draft }, n) => (seqs[n]! <= indexedUpTo ? [[seqs[n]!, toSearchTerms(model, draft.doc)]] : [])),
  )
  if (tracked) noteChanges(tx, model.key, seqs)
  if (logged)
    await appendChanges(
      tx,
      model.key,
      prepared.map(({ shown, draft }) => ({ after: { shown, keys: JSON.stringify(draft.keys) } })),
    )
  if (model.dispatchers?.create) {
    for (const [actor, group] of Map.groupBy(prepared, ({ draft }) => draft.by)) {
      const events = group.map(({ draft }) => ({ ...draft, version: 1 }))
      await emitEntityEvents(tx, { tenant: model.tenant, actor }, 'create', model.key, events)
    }
  }
  return prepared.map(({ time, shown, draft: { user, workspace } }, n) => ({
    seq: seqs[n]!,
    row: [shown, user, workspace, 1, time],
  }))
}

const toCreated = (prepared: PreparedEntity[], seqs: number[]) =>
  prepared.map(({ time, draft: { _id, identifier, by } }, n) => ({
    ...{ seq: seqs[n]!, _id, identifier, at: time, author: by?.user },
  }))

/** Groups the rows of several entities by field, because rows of a field are adjacent in the index. */
const groupByField = (rows: unknown[][]) =>
  [...Map.groupBy(rows, ([field, path]) => (path ? `${field}.${path}` : field)).values()].flat()

const keysOf = (model: Model, draft: EntityDraft) =>
  draft.texts?.storedKeys ?? toStoredKeys(model, draft.doc, draft.keys)

type InsertedIds = BlueprintFeatures & { seqs: number[] }

async function insertRow(tx: Tx, model: Model, { time, text, draft }: PreparedEntity): Promise<InsertedIds> {
  const { identifier, user, workspace } = draft
  const row = [
    toStoredId(draft),
    identifier,
    user,
    workspace,
    text,
    keysOf(model, draft),
    time,
    time,
    backfillMark(model),
    ...toHistoryValues(model, draft),
  ]
  const [inserted] = await tx.query(getInsertSql(model).one, [
    ...row,
    ...[model.key, model._id, model.version, model.indexing],
    ...[model.key, model.key, model.key],
  ])
  if (!inserted) throw new StaleBlueprint()
  const [seq, ...features] = inserted
  return { ...toFeatures(features), seqs: [seq as number] }
}

/** Inserts any number of entities in a few statements, which return their numbers in any order. */
async function insertRows(tx: Tx, model: Model, prepared: PreparedEntity[]): Promise<InsertedIds> {
  const observed = await requireFreshBlueprint(tx, model)
  const form = backfillMark(model)
  const inserted = await tx.executeMany(
    getInsertSql(model).many,
    prepared.map(({ time, text, draft }) => {
      const { identifier, user, workspace } = draft
      const texts = [toStoredId(draft), model.code, identifier, user, workspace, text, keysOf(model, draft)]
      return [...texts, 1, time, time, form, ...toHistoryValues(model, draft)]
    }),
  )
  const numbers = new Map(inserted as [string, number][])
  return { ...observed, seqs: prepared.map(({ draft }) => numbers.get(draft.identifier)!) }
}
