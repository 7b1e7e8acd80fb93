import { abortAlteration, advanceProgress, cutOver, findAlteration } from '../../blueprints/cutover'
import type { Model, PendingModel } from '../../blueprints/model'
import { yieldToEventLoop } from '../../core/event-loop'
import type { Lease } from '../../jobs/with-lease'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { ensureSearchIndex } from '../search/search-index'
import { readIndexedUpTo, replaceTerms } from '../search/search-terms'
import { toJointTerms } from '../search/tokenizer'
import type { Doc } from '../store/doc'
import { getMaintainedIndexes, type IndexKeys, toIndexRows } from '../store/index-keys'
import { diffRows, withEntity, writeIndexRows } from '../store/rows'
import { extractDocumentJson } from '../store/serializer'
import { readIndexKeys } from '../store/stored-keys'
import type { AlterationPlan, TransformError } from '../write/pending-document'
import { type MarkedEntity, readDirtyEntities, readNextEntities, rereadChanged } from './entity-scan'
import { duplicateError, newUniqueFields } from './schema-survey'
import { pickFreshKeys, type TransformedEntity, transformEntity } from './transform'

const MAX_DIRTY_PER_WRITE = 200 // entities written since their transformation, per transaction
const MAX_COMPUTED_PER_WRITE = 20 // of these, when formulas have to be computed in the transaction

type BackfilledEntity = { stored: MarkedEntity; before: Doc; after: TransformedEntity }

/** An entity cannot be converted to the new form. */
class CannotConvert extends Error {
  constructor(
    readonly reason: TransformError,
    readonly identifier: string,
  ) {
    super(reason.message)
  }
}

/**
 * Prepares a slice of entities for the new form. Beside their current state they get their future JSON, and index keys
 * and rows for fields with new numbers, which no query uses yet. Once all entities are prepared and none has been
 * written since, the new form takes effect in the same transaction. Returns whether there is more to do.
 */
export async function backfill(
  tenant: Tenant & Lease,
  model: Model,
  pending: PendingModel,
  limit?: number,
): Promise<boolean> {
  const { key } = model
  const [row] = (await tenant.db.query('select created, entity, upto from alterations where blueprint = ?', [
    key,
  ])) as number[][]
  if (!row) return false
  // A search index that is still being built would get only the words of the old fields.
  if (await isSearchIndexBuilding(tenant.db, key)) await ensureSearchIndex(tenant, model)
  const { entities: next, end } = await readNextEntities(
    tenant.db,
    model,
    { from: [row[0]!, row[1]!], upto: row[2]! },
    limit,
  )
  const entities = end ? next : await readDirtyEntities(tenant.db, model, MAX_DIRTY_PER_WRITE)
  const transformed = new Map<number, BackfilledEntity>()
  for (const stored of entities) {
    transformed.set(stored.seq, await toBackfilledEntity(pending, stored))
    if (pending.diff.recomputes) await yieldToEventLoop()
  }
  try {
    return await tenant.write(async (tx) => {
      const state = await findAlteration(tx, key, pending.form, 'preparing')
      if (!state) return false
      if (await isSearchIndexBuilding(tx, key)) return true
      const changed = await rereadChanged(tx, model, entities)
      const current: BackfilledEntity[] = []
      for (const { seq } of entities) {
        if (!changed.has(seq)) current.push(transformed.get(seq)!)
        else if (changed.get(seq)) current.push(await toBackfilledEntity(pending, changed.get(seq)!, { atOnce: true }))
      }
      await writeBackfilled(tx, model, pending, current)
      if (end) await advanceProgress(tx, state, end, next.length)
      // The rest is done in this transaction, so that other writers cannot keep the alteration from finishing.
      const limit = pending.diff.recomputes ? MAX_COMPUTED_PER_WRITE : MAX_DIRTY_PER_WRITE
      const dirty = end ? [] : await readDirtyEntities(tx, model, limit + 1)
      if (end || dirty.length > limit) return true
      const backfilled: BackfilledEntity[] = []
      for (const stored of dirty) backfilled.push(await toBackfilledEntity(pending, stored, { atOnce: true }))
      await writeBackfilled(tx, model, pending, backfilled)
      await cutOver(tx, state)
      return false
    })
  } catch (error) {
    if (!(error instanceof CannotConvert)) throw error
    const { reason, identifier } = error
    const problem = { ...reason, details: [{ ...reason, count: 1, examples: [identifier] }] }
    const { field: _, ...refusal } = problem
    await tenant.write(async (tx) => {
      const state = await findAlteration(tx, key, pending.form, 'preparing')
      if (state) await abortAlteration(tx, state, refusal)
    })
    return false
  }
}

async function toBackfilledEntity(
  plan: AlterationPlan,
  stored: MarkedEntity,
  when: { atOnce?: boolean } = {},
): Promise<BackfilledEntity> {
  const before = JSON.parse(extractDocumentJson(stored.shown)) as Doc
  return { stored, before, after: await transformEntity(plan, stored, before, when) }
}

const isSearchIndexBuilding = async (db: Pick<Tx, 'query'>, key: string) =>
  (await db.query('select 1 from search_progress where blueprint = ? and done < upto', [key])).length > 0

const UPDATE_ENTITY = 'update entities set shown = ?, altered = ?, form = ?, keys = ? where seq = ?'

async function writeBackfilled(tx: Tx, model: Model, pending: PendingModel, entities: BackfilledEntity[]) {
  await assertConvertible(tx, pending, entities)
  const [removedRows, addedRows, updates]: unknown[][][] = [[], [], []]
  const rewords = pending.next.fields.some(({ key, kind }) => kind.isSearchable && pending.diff.reindexedKeys.has(key))
  const terms: [number, string][] = []
  for (const { stored, before, after } of entities) {
    const allKeys = readIndexKeys(stored, model)
    // Keys of an earlier attempt, from before the entity was written.
    const stale = pickFreshKeys(pending, allKeys)
    const [removed, added] = diffRows(toIndexRows(getMaintainedIndexes(pending.next), stale), after.index)
    removedRows!.push(...withEntity(stored, removed))
    addedRows!.push(...withEntity(stored, added))
    if (rewords) terms.push([stored.seq, toJointTerms([model, before], [pending.next, after.doc])])
    const differs = !Bun.deepEquals(after.doc, before)
    if (!differs && stored.form === null && Bun.deepEquals(stale, after.keys)) continue
    const keys = { ...omitKeys(allKeys, stale), ...after.keys }
    const altered = differs ? JSON.stringify(after.doc) : null
    const text = extractDocumentJson(stored.shown)
    updates!.push([text, altered, differs ? pending.form : null, JSON.stringify(keys), stored.seq])
  }
  await writeIndexRows(tx, removedRows!, addedRows!)
  await tx.executeMany(UPDATE_ENTITY, updates!)
  const indexedUpTo = terms.length ? await readIndexedUpTo(tx, model.key) : 0
  replaceTerms(
    tx,
    terms.filter(([seq]) => seq <= indexedUpTo),
  )
}

const omitKeys = (keys: IndexKeys, omitted: IndexKeys) =>
  Object.fromEntries(Object.entries(keys).filter(([label]) => !Object.hasOwn(omitted, label)))

/** No two prepared entities may have the same value of a unique field. @throws CannotConvert */
async function assertConvertible(tx: Tx, plan: AlterationPlan, entities: BackfilledEntity[]) {
  for (const { stored, after } of entities)
    if (after.errors[0]) throw new CannotConvert(after.errors[0], stored.identifier)
  const selectOther =
    'select entity from entity_index where field = ? and path = ? and value = ? and entity <> ? limit 1'
  for (const { key, number, label } of newUniqueFields(plan)) {
    const seen = new Set<unknown>()
    for (const { stored, after } of entities) {
      const value = after.keys[label]
      if (value === undefined) continue
      if (seen.has(value) || (await tx.query(selectOther, [number, '', value, stored.seq])).length)
        throw new CannotConvert(duplicateError(key), stored.identifier)
      seen.add(value)
    }
  }
}
