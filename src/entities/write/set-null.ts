import type { EntityHistory } from '../../blueprints/history'
import type { Model } from '../../blueprints/model'
import { now } from '../../core/clock'
import { Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { appendLoggedChanges, toLogged } from '../changes/change-log'
import { noteTrackedChanges } from '../changes/tracked-changes'
import { appendChange, SET_LATEST_VERSION, toNextVersion } from '../history/version-log'
import type { Doc } from '../store/doc'
import { fieldLabel, type IndexKeys, toIndexKeys } from '../store/index-keys'
import { DELETE_INDEX_ROW, type StoredEntity, storedColumnsInForce, toStored } from '../store/rows'
import { extractDocumentJson, packEntity } from '../store/serializer'
import { oneOf } from '../store/sql-fragments'
import { type DerivableFields, readDerivableFields, readIndexKeys, toStoredKeys } from '../store/stored-keys'
import { assertUnique, type BlueprintFeatures, requireFreshBlueprint } from './constraints'
import type { EventEntity } from './entity-events'
import type { ComputedEntity, ReferenceGraph } from './recomputation'
import { type Pointer, RestrictedDelete } from './restricted-delete'
import { replaceEntity } from './update'

const ENTITIES_PER_READ = 50 // entities read by one statement
const MAX_REWRITTEN_CHARACTERS = 4 << 20 // characters that are rewritten in one transaction

// An entity that was prepared for an alteration has to be prepared again.
const UPDATE_SET = `update entities set shown = ?, altered = null, keys = ?, version = ?, updated = ?,
  form = (select -1 from alterations a where a.blueprint = ? and a.state = 'preparing')`
const UPDATE_ENTITY = `${UPDATE_SET} where seq = ?`
const UPDATE_WITH_VERSION = `${UPDATE_SET}, ${SET_LATEST_VERSION} where seq = ?`

type ClearedEntity = EventEntity & { blueprint: string }

/**
 * Removes values from relations, as their blueprints demand and without checking permissions, and applies the
 * recomputed formulas. An entity that requires a value blocks the removal of its target, unless the target is of the
 * blueprint `forced`; then the value stays. Returns the changed entities. @throws RestrictedDelete
 */
export async function setReferencesNull(
  tx: Tx,
  pointers: Pointer[],
  graph: ReferenceGraph,
  { author, forced }: { author?: string; forced?: string } = {},
): Promise<ClearedEntity[]> {
  const cleared: ClearedEntity[] = []
  const entities = [...Map.groupBy(pointers, ({ entity }) => entity)]
  const observed = new Map<string, BlueprintFeatures>()
  const derivableFields = new Map<string, DerivableFields>()
  let size = 0
  for (let at = 0; at < entities.length; at += ENTITIES_PER_READ) {
    const chunk = new Map(entities.slice(at, at + ENTITIES_PER_READ))
    const { sql, params } = oneOf('seq', [...chunk.keys()])
    const changes = []
    const rewrites: Rewrite[] = []
    for (const row of await tx.query(`select ${storedColumnsInForce} from entities where ${sql}`, params)) {
      const stored = toStored(row)
      size += stored.shown.length
      if (size > MAX_REWRITTEN_CHARACTERS) throw new RestrictedDelete(pointers, true)
      const ownPointers = chunk.get(stored.seq) ?? []
      const { blueprint } = ownPointers[0]!.reference
      const fields = derivableFields.get(blueprint) ?? (await readDerivableFields(tx, blueprint))
      derivableFields.set(blueprint, fields)
      const remaining = withoutReferences(stored, fields, ownPointers, forced)
      if (!remaining) continue
      const computes = graph.withComputedFields.has(blueprint)
      const recomputed = computes ? graph.recomputation.get(blueprint, stored, remaining.doc) : undefined
      const after = recomputed && (await toComputedRow(tx, recomputed, stored))
      if (recomputed && !after && !ownPointers.some(({ target }) => target === forced))
        throw new RestrictedDelete(ownPointers)
      if (recomputed && after) rewrites.push({ model: recomputed.model, before: stored, after })
      else if (recomputed || !computes)
        changes.push({
          blueprint,
          entity: stored.seq,
          before: toLogged(stored, fields),
          after: await writeRemaining(tx, blueprint, stored, remaining, {
            history: graph.histories.get(blueprint),
            author,
          }),
        })
      // Written at once, so that the next entity is checked against its unique values.
      if (recomputed?.model.fields.some(({ unique }) => unique))
        await writeRewrites(tx, rewrites.splice(0), observed, author)
      const { _id, identifier, user, workspace, version } = stored
      cleared.push({ blueprint, _id, identifier, user, workspace, version: version + 1 })
    }
    await writeRewrites(tx, rewrites, observed, author)
    if (!changes.length) continue
    await Promise.all([appendLoggedChanges(tx, changes), noteTrackedChanges(tx, changes)])
  }
  return cleared
}

/** An entity without the removed references, and the index rows to delete. */
type RemainingEntity = { doc: Doc; keys: IndexKeys; removedRows: unknown[][] }

function withoutReferences(
  row: StoredEntity,
  fields: DerivableFields,
  pointers: Pointer[],
  forced?: string,
): RemainingEntity | undefined {
  const [doc, keys] = [JSON.parse(extractDocumentJson(row.shown)), { ...readIndexKeys(row, fields) }]
  const removedRows: unknown[][] = []
  for (const [{ field, number, multi, minValues }, of] of Map.groupBy(pointers, ({ reference }) => reference)) {
    const values = of.map(({ value }) => value)
    const stays = (value: string) => !values.includes(value)
    const remaining = multi ? (doc[field] as string[]).filter(stays) : []
    if (remaining.length < minValues) {
      if (of[0]?.target === forced) continue
      throw new RestrictedDelete(of)
    }
    const label = fieldLabel({ number })
    if (multi) Object.assign(doc, { [field]: remaining })
    else delete doc[field]
    if (multi) keys[label] = (keys[label] as string[]).filter(stays)
    else delete keys[label]
    removedRows.push(...values.map((value) => [number, '', value, row.created, row.seq]))
  }
  return removedRows.length ? { doc, keys, removedRows } : undefined
}

async function writeRemaining(
  tx: Tx,
  blueprint: string,
  row: StoredEntity,
  { doc, keys, removedRows }: RemainingEntity,
  { history, author }: { history?: EntityHistory; author?: string },
) {
  const updated = now()
  const after = { shown: packEntity({ ...row, updated }, JSON.stringify(doc)), keys: JSON.stringify(keys) }
  await tx.executeMany(DELETE_INDEX_ROW, removedRows)
  const version = history && toNextVersion(history, row, { ...row, shown: after.shown })
  const values = [extractDocumentJson(after.shown), after.keys, row.version + 1, updated, blueprint]
  if (!version) await tx.query(UPDATE_ENTITY, [...values, row.seq])
  else
    await Promise.all([
      appendChange(tx, history, version, { identifier: row.identifier, at: updated, since: row.updated, author }),
      tx.query(UPDATE_WITH_VERSION, [...values, history.number, version.number, row.seq]),
    ])
  return after
}

/** Returns the row of a recomputed entity, or undefined when it is invalid or a unique value is taken. */
async function toComputedRow(
  tx: Tx,
  { model, computedDoc }: ComputedEntity,
  before: StoredEntity,
): Promise<StoredEntity | undefined> {
  if (!computedDoc) return
  const keys = toIndexKeys(model, computedDoc)
  if (await assertUnique(tx, model, keys, undefined, readIndexKeys(before, model)).catch(ignoreProblem)) return
  const [updated, version] = [now(), before.version + 1]
  const shown = packEntity({ ...before, updated }, JSON.stringify(computedDoc))
  return { ...before, shown, keys: toStoredKeys(model, computedDoc, keys), updated, version }
}

function ignoreProblem(error: unknown): true {
  if (error instanceof Problem) return true
  throw error
}

type Rewrite = { model: Model; before: StoredEntity; after: StoredEntity }

async function writeRewrites(tx: Tx, rewrites: Rewrite[], observed: Map<string, BlueprintFeatures>, author?: string) {
  for (const { model } of rewrites)
    if (!observed.has(model.key)) observed.set(model.key, await requireFreshBlueprint(tx, model))
  await Promise.all(
    rewrites.map(({ model, before, after }) =>
      replaceEntity(tx, model, before, after, observed.get(model.key)!, { author }),
    ),
  )
}
