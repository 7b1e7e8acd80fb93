import { advanceProgress, completeAlteration, findAlteration } from '../../blueprints/cutover'
import type { Model } from '../../blueprints/model'
import type { Lease } from '../../jobs/with-lease'
import type { Tx } from '../../storage/port'
import { invalidate } from '../../tenancy/cache'
import type { Tenant } from '../../tenancy/tenants'
import { readIndexedUpTo, replaceTerms } from '../search/search-terms'
import { toSearchTerms } from '../search/tokenizer'
import type { Doc } from '../store/doc'
import { getMaintainedIndexes, toIndexKeys, toIndexRows } from '../store/index-keys'
import { diffRows, withEntity, writeIndexRows } from '../store/rows'
import { extractDocumentJson } from '../store/serializer'
import { readIndexKeys, toStoredKeys } from '../store/stored-keys'
import { requireFreshBlueprint, StaleBlueprint } from '../write/constraints'
import { readNextEntities, type ScanRange } from './entity-scan'

const UPDATE_ENTITY = 'update entities set shown = ?, altered = null, form = null, keys = ? where seq = ?'

/**
 * Removes from a slice of entities what belongs to the previous form, or to a form that was given up. Returns whether
 * there is more to do.
 */
export async function cleanUp(tenant: Tenant & Lease, model: Model, form: number, limit?: number): Promise<boolean> {
  try {
    return await tenant.write((tx) => cleanUpNext(tx, model, form, limit))
  } catch (error) {
    if (!(error instanceof StaleBlueprint)) throw error
    invalidate(tenant, 'blueprints')
    return true
  }
}

async function cleanUpNext(tx: Tx, model: Model, form: number, limit?: number): Promise<boolean> {
  const state = await findAlteration(tx, model.key, form, 'cleaning')
  if (!state) return false
  // The rows of an index that the model does not know would be deleted.
  await requireFreshBlueprint(tx, model)
  const range: ScanRange = { from: [state.created, state.entity], upto: state.upto }
  const { entities, end } = await readNextEntities(tx, model, range, limit)
  if (!end) {
    await completeAlteration(tx, state)
    return false
  }
  const maintained = getMaintainedIndexes(model)
  const [removedRows, addedRows, updates]: unknown[][][] = [[], [], []]
  const terms: [number, string][] = []
  for (const entity of entities) {
    const doc = JSON.parse(extractDocumentJson(entity.shown)) as Doc
    const [old, keys] = [readIndexKeys(entity, model), toIndexKeys(model, doc)]
    if (entity.form === null && Bun.deepEquals(old, keys)) continue
    const [removed, added] = diffRows(
      toIndexRows({ ...maintained, fields: undefined }, old, entity),
      toIndexRows(maintained, keys, entity),
    )
    removedRows!.push(...withEntity(entity, removed))
    addedRows!.push(...withEntity(entity, added))
    updates!.push([extractDocumentJson(entity.shown), toStoredKeys(model, doc, keys), entity.seq])
    terms.push([entity.seq, toSearchTerms(model, doc)])
  }
  await writeIndexRows(tx, removedRows!, addedRows!)
  await tx.executeMany(UPDATE_ENTITY, updates!)
  const indexedUpTo = terms.length ? await readIndexedUpTo(tx, model.key) : 0
  replaceTerms(
    tx,
    terms.filter(([seq]) => seq <= indexedUpTo),
  )
  await advanceProgress(tx, state, end, entities.length)
  return true
}
