import type { PublicCtx } from '../../accounts/context'
import { readMaintainedIndexes } from '../../blueprints/field-indexes'
import {
  assertReferencesCurrent,
  invalidateReferences,
  MAX_BLUEPRINT_RETRIES,
  type References,
  referencesOf,
  StaleReferences,
} from '../../blueprints/references'
import { now } from '../../core/clock'
import { Busy } from '../../storage/errors'
import type { Tx, WriteOptions } from '../../storage/port'
import { invalidate } from '../../tenancy/cache'
import type { Tenant } from '../../tenancy/tenants'
import { appendRemovals } from '../changes/change-log'
import { noteTrackedChanges } from '../changes/tracked-changes'
import * as versionLog from '../history/version-log'
import { removeTerms } from '../search/search-terms'
import { type IndexKeys, toIndexRows } from '../store/index-keys'
import { DELETE_INDEX_ROW, type StoredEntity } from '../store/rows'
import { oneOf, takeWithinSize, toChunks } from '../store/sql-fragments'
import { readDerivedKeys } from '../store/stored-keys'
import { StaleBlueprint } from './constraints'
import { type EventAuthor, emitDeleteEvents, emitUpdateEvents } from './entity-events'
import { NotPrecomputed, Recomputation, type ReferenceGraph } from './recomputation'
import { type Pointer, RestrictedDelete, toProblem } from './restricted-delete'
import { setReferencesNull } from './set-null'

/** An entity to be removed. */
export type DeletedEntity = { seq: number; keys: string; created: number; blueprint: string; identifier: string }

export type DeleteOptions = {
  references: ReferenceGraph
  /** The author of the removal. */
  by: EventAuthor
  /** The entities of this blueprint are removed despite any references to them. */
  forced?: string
  /**
   * Returns those of the given entities that the same request removes anyway, so that their references do not block it.
   */
  filterRemovable?: (entities: number[]) => Promise<DeletedEntity[]>
  erased?: ErasedHistory
}

/** Which removed entities leave no trace in a history: none of their versions stays, or none since their creation. */
export type ErasedHistory = { of: (entity: DeletedEntity) => boolean; extent: 'all' | 'since creation' }

// A cascade is one transaction, so that a crash cannot leave half of it; the limits keep other writers from waiting
// long.
const MAX_CASCADED_ENTITIES = 1_000 // entities that are removed or changed along
const MAX_CASCADED_INDEX_ROWS = 10_000 // index rows of these entities
const MAX_CASCADE_DEPTH = 100 // steps from one entity to the next
const ENTITIES_PER_WRITE = 200 // entities per transaction of a batched deletion, so that other writers get their turn
const MAX_STATEMENTS_PER_WRITE = 4_000 // statements per transaction of a batched deletion
const MAX_RECOMPUTATIONS = 50 // rounds of computing formulas for one write

/** Runs a transaction that removes entities. @throws 409 ENTITY_IN_USE, TOO_MANY_REFERENCES */
export const deleteInTransaction = <T>(
  ctx: PublicCtx,
  work: (tx: Tx, references: ReferenceGraph) => Promise<T>,
): Promise<T> =>
  withReferenceGraph(ctx, work).catch(async (error) => {
    throw error instanceof RestrictedDelete ? await toProblem(ctx, error) : error
  })

/**
 * Removes entities in as many transactions as needed. `remove` removes at most `limit` entities and returns how many it
 * removed; with 0 the deletion ends. Returns the total. @throws 409 ENTITY_IN_USE, TOO_MANY_REFERENCES
 */
export async function deleteInBatches(
  ctx: PublicCtx,
  remove: (tx: Tx, references: ReferenceGraph, limit: number) => Promise<number>,
): Promise<number> {
  let count = 0
  for (let limit = ENTITIES_PER_WRITE; ; ) {
    try {
      // The entities may be found by their words, which are only complete when a transaction begins.
      const removed = await withReferenceGraph(ctx, (tx, references) => remove(tx, references, limit), {
        exclusive: true,
      })
      if (!removed) return count
      count += removed
    } catch (error) {
      if (!(error instanceof RestrictedDelete)) throw error
      if (!error.tooMany || limit === 1) throw await toProblem(ctx, error, count)
      limit = Math.ceil(limit / 4)
    }
  }
}

/**
 * Runs a transaction with the graph of references. Runs it again when a blueprint has changed since the graph was read,
 * or when formulas have to be computed first. @throws RestrictedDelete
 */
export async function withReferenceGraph<T>(
  tenant: Tenant,
  work: (tx: Tx, references: ReferenceGraph) => Promise<T>,
  options?: WriteOptions,
): Promise<T> {
  const recomputation = new Recomputation(tenant)
  for (let [tries, recomputations] = [0, 0]; ; ) {
    const references = await referencesOf(tenant.db)
    await recomputation.computeRequested()
    try {
      return await tenant.write(async (tx) => {
        await assertReferencesCurrent(tx, references)
        recomputation.startWrite()
        const result = await work(tx, { ...references, recomputation })
        recomputation.assertReady()
        return result
      }, options)
    } catch (error) {
      // A rejection may be caused only by a missing computed value.
      const needsComputing = !recomputation.isReady && (error instanceof NotPrecomputed || !(error instanceof Busy))
      if (needsComputing && ++recomputations < MAX_RECOMPUTATIONS) continue
      if (!(error instanceof StaleReferences || error instanceof StaleBlueprint) || ++tries > MAX_BLUEPRINT_RETRIES)
        throw error
      invalidateReferences(tenant.db)
      invalidate(tenant, 'blueprints')
    }
  }
}

/**
 * Removes entities, and treats all entities that refer to them as their relations demand, regardless of their owner.
 * References from entities that are removed as well do not block, so cycles can be removed. Returns all removed
 * entities.
 * @throws RestrictedDelete
 */
export async function deleteEntities(
  tx: Tx,
  first: DeletedEntity[],
  { references, by, forced, filterRemovable, erased }: DeleteOptions,
): Promise<DeletedEntity[]> {
  const removed = new Map(first.map((row) => [row.seq, row]))
  const pointers: Pointer[] = []
  const stays = ({ entity }: Pointer) => !removed.has(entity)
  let [rows, steps] = [0, 0]

  for (let wave = first; wave.length; steps++) {
    const pointersFound = await findPointers(tx, references, wave, forced)
    pointers.push(...pointersFound.filter(({ reference }) => reference.onDelete !== 'cascade'))
    const cascading = pointersFound.filter((pointer) => pointer.reference.onDelete === 'cascade' && stays(pointer))
    wave = await readEntitiesToDelete(tx, cascading)
    if (!wave.length) wave = await resolveRestricted(filterRemovable)
    for (const row of wave) {
      removed.set(row.seq, row)
      rows += toIndexRows({}, JSON.parse(row.keys)).length
    }
    if (
      removed.size > first.length + MAX_CASCADED_ENTITIES ||
      rows > MAX_CASCADED_INDEX_ROWS ||
      steps > MAX_CASCADE_DEPTH
    )
      throw new RestrictedDelete([...pointers, ...cascading], true)
  }
  const cleared = pointers.filter(({ reference }) => reference.onDelete === 'nullify').filter(stays)
  if (new Set(cleared.map(({ entity }) => entity)).size > MAX_CASCADED_ENTITIES)
    throw new RestrictedDelete(cleared, true)
  const author = by.actor?.user
  await emitUpdateEvents(tx, by, references, await setReferencesNull(tx, cleared, references, { author, forced }))
  await emitDeleteEvents(tx, by, references, [...removed.values()])
  await deleteRows(tx, [...removed.values()], { histories: references.histories, author, erased })
  return [...removed.values()]

  /** Returns entities that block the deletion by their references, but would be removed by the same request anyway. */
  async function resolveRestricted(filterRemovable: DeleteOptions['filterRemovable']) {
    const staying = pointers.filter(stays)
    const restricting = staying.filter(({ reference }) => reference.onDelete === 'restrict')
    const own = staying.filter(
      ({ reference: { blueprint, onDelete, minValues } }) =>
        blueprint === first[0]?.blueprint && (onDelete === 'restrict' || minValues > 0),
    )
    const removable = (own.length && (await filterRemovable?.([...new Set(own.map(({ entity }) => entity))]))) || []
    if (restricting.length && !removable.length) throw new RestrictedDelete(restricting)
    return removable
  }
}

/** Returns the references to the given entities. @throws RestrictedDelete when there are too many */
async function findPointers(
  tx: Tx,
  { byTarget }: References,
  entities: DeletedEntity[],
  forced?: string,
): Promise<Pointer[]> {
  const pointers: Pointer[] = []
  for (const [blueprint, group] of Map.groupBy(entities, (one) => one.blueprint)) {
    for (const reference of byTarget.get(blueprint) ?? []) {
      if (reference.onDelete === 'restrict' && blueprint === forced) continue
      const { sql, params } = oneOf(
        'i.value',
        group.map(({ identifier }) => identifier),
      )
      const rows = await tx.query(
        `select i.entity, i.value from entity_index i where i.field = ? and i.path = '' and ${sql} limit ?`,
        [reference.number, ...params, MAX_CASCADED_ENTITIES + group.length],
      )
      pointers.push(...rows.map(([entity, value]) => ({ reference, target: blueprint, entity, value }) as Pointer))
      if (rows.length < MAX_CASCADED_ENTITIES + group.length) continue
      throw new RestrictedDelete(pointers, group.length > 1 || reference.onDelete !== 'restrict')
    }
  }
  return pointers
}

/** Reads the entities that refer to others in the form that a removal needs. */
async function readEntitiesToDelete(tx: Tx, pointers: Pointer[]): Promise<DeletedEntity[]> {
  const deleted: DeletedEntity[] = []
  const blueprints = new Map(pointers.map(({ entity, reference }) => [entity, reference.blueprint]))
  for (const chunk of toChunks([...blueprints.keys()])) {
    const { sql, params } = oneOf('seq', chunk)
    const rows = await tx.query(`select seq, keys, created, identifier from entities where ${sql}`, params)
    deleted.push(...(rows as DeletedEntityRow[]).map((row) => toDeletedEntity(blueprints.get(row[0])!, row)))
  }
  return deleted
}

export type DeletedEntityRow = [seq: number, keys: string, created: number, identifier: string]

/** Returns an entity of the blueprint with this key that is to be removed. */
export const toDeletedEntity = (
  blueprint: string,
  [seq, keys, created, identifier]: DeletedEntityRow,
): DeletedEntity => ({ seq, keys, created, blueprint, identifier })

/** Returns the first entities, as many as one transaction should delete, but at least one. */
export const takeBatch = <Row extends Pick<StoredEntity, 'keys'>>(entities: Row[]): Row[] =>
  takeWithinSize(entities, MAX_STATEMENTS_PER_WRITE, ({ keys }) => 1 + toIndexRows({}, JSON.parse(keys)).length)

/** Removes entities with all rows of the index that they may have, regardless of the current model. */
export async function deleteRows(
  tx: Tx,
  entities: DeletedEntity[],
  { histories, author, erased }: Pick<References, 'histories'> & { author?: string; erased?: ErasedHistory },
) {
  if (histories.size) {
    const [gone, kept] = [
      erased ? entities.filter(erased.of) : [],
      erased ? entities.filter((one) => !erased.of(one)) : entities,
    ]
    await versionLog.appendRemovals(tx, histories, author, now(), kept)
    await versionLog.eraseVersions(tx, histories, gone, erased?.extent)
  }
  const rows: unknown[][] = []
  for (const [blueprint, group] of Map.groupBy(entities, (one) => one.blueprint)) {
    const maintained = await readMaintainedIndexes(tx, blueprint)
    const derived = await readDerivedKeys(
      tx,
      blueprint,
      maintained,
      group.map(({ seq }) => seq),
    )
    for (const { seq, keys, created } of group) {
      const more = derived.get(seq)
      const all = { ...more?.keys, ...(JSON.parse(keys) as IndexKeys) }
      rows.push(...toIndexRows(maintained, all, more?.owners).map((row) => [...row, created, seq]))
    }
  }
  const seqs = entities.map(({ seq }) => seq)
  const changes = entities.map(({ blueprint, seq }) => ({ blueprint, entity: seq }))
  await Promise.all([appendRemovals(tx, entities), noteTrackedChanges(tx, changes)])
  await Promise.all([
    tx.executeMany(DELETE_INDEX_ROW, rows),
    removeTerms(tx, seqs),
    tx.executeMany(
      'delete from entities where seq = ?',
      seqs.map((seq) => [seq]),
    ),
  ])
}
