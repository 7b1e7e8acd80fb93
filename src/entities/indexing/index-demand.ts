import { getModel } from '../../blueprints/blueprints'
import { addCompoundIndex } from '../../blueprints/compound-indexes'
import { type CompoundParts, partNumbers, partsKey } from '../../blueprints/compound-parts'
import { addFieldIndexes, announceIndexChange, getIndexReason, isNeverIndexed } from '../../blueprints/field-indexes'
import type { Model, ModelField } from '../../blueprints/model'
import type { IndexReason } from '../../blueprints/shapes'
import { BoundedMap } from '../../core/bounded-map'
import { DAY_MS, now, toIsoString } from '../../core/clock'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import type { Lease } from '../../jobs/with-lease'
import { Busy } from '../../storage/errors'
import type { Tx } from '../../storage/port'
import { invalidate, writeInvalidating } from '../../tenancy/cache'
import { getTenant, type Tenant } from '../../tenancy/tenants'
import { requireFreshBlueprint, StaleBlueprint } from '../write/constraints'
import { resumeIndexing } from './index-builder'

const UNUSED_DAYS = 30 // after so long without a query that used it, an index is removed

/** Returns whether a field has no index only because no query has needed one yet. */
export const lacksIndex = (field: ModelField) => !field.index && !isNeverIndexed(field)

const requested = new Set<string>()

/** Has the index of a field built in the background, because a query needs it. */
export function requestIndex(model: Model, field: ModelField, reason: IndexReason) {
  const name = `${model.tenant} ${model._id} ${field.number}`
  // A reader thread cannot write. The main thread tries each costly query first.
  if (!Bun.isMainThread || !lacksIndex(field) || requested.has(name)) return
  requested.add(name)
  inBackground(model, (tenant) =>
    changeIndexes(
      tenant,
      model.key,
      (current) => current.fields.some((one) => one.number === field.number && lacksIndex(one)),
      (tx) => addFieldIndexes(tx, model.key, [[field.number, reason]], 'building'),
    ),
  ).finally(() => requested.delete(name))
}

const MAX_COMPOUND_INDEXES = 8 // of a blueprint
const REPLACEABLE_DAYS = 2 // an index unused for so long can be replaced by another one
const seenOnce = new BoundedMap<string, true>(10_000)

/**
 * Starts the build of a compound index at the second request of lists, unless the blueprint has the maximum number. Returns
 * whether the lists have to run without it.
 */
export function requestCompoundIndex(model: Model, parts: CompoundParts): boolean {
  if (model.compoundIndexes.some((index) => partsKey(index) === partsKey(parts) && index.state !== 'removing'))
    return false
  const isFull = (current: Model) => current.compoundIndexes.length >= MAX_COMPOUND_INDEXES && !findReplaceable(current)
  if (!Bun.isMainThread || model.alteration || isFull(model)) return true
  const name = `${model.tenant} ${model._id} ${partsKey(parts)}`
  if (!seenOnce.has(name)) seenOnce.set(name, true)
  else if (!requested.has(name)) {
    requested.add(name)
    inBackground(model, (tenant) =>
      changeIndexes(
        tenant,
        model.key,
        (current) =>
          !current.alteration &&
          !isFull(current) &&
          !current.compoundIndexes.some((index) => partsKey(index) === partsKey(parts)) &&
          partNumbers(parts).every((number) => current.fields.some((field) => field.number === number)),
        async (tx, current) => {
          const replaced = current.compoundIndexes.length >= MAX_COMPOUND_INDEXES && findReplaceable(current)
          if (replaced) await tx.query(RETIRE, [model.key, replaced.number])
          await addCompoundIndex(tx, model.key, parts)
        },
      ),
    ).finally(() => requested.delete(name))
  }
  return false
}

/** Returns the compound index unused for longest, if it can be replaced. */
function findReplaceable({ compoundIndexes }: Model) {
  const [oldest] = compoundIndexes
    .filter(({ state }) => state === 'ready')
    .sort((one, other) => one.used.localeCompare(other.used))
  return oldest && Date.parse(oldest.used) < now() - REPLACEABLE_DAYS * DAY_MS ? oldest : undefined
}

const RETIRE = "update field_indexes set state = 'retiring' where blueprint = ? and number = ?"

/** Remembers, to the day, that a query uses the index of a field. */
export const noteFieldUse = (model: Model, { index, number }: ModelField) => index && noteIndexUse(model, index, number)

/** Records, to the day, that a query uses the index with a number. */
export function noteIndexUse(model: Model, index: { used: string }, number: number) {
  if (now() - Date.parse(index.used) < DAY_MS || !Bun.isMainThread) return
  index.used = toIsoString(now())
  inBackground(model, ({ write }) =>
    write((tx) =>
      tx.query('update field_indexes set used = ? where blueprint = ? and number = ?', [now(), model.key, number]),
    ),
  )
}

/** A failure is made up for by the next query that needs the index. */
const inBackground = ({ tenant }: Model, work: (tenant: Tenant) => Promise<unknown>) =>
  getTenant(tenant)
    .then(work)
    .catch((cause) => {
      if (!(cause instanceof Busy || cause instanceof Problem)) logError('INDEXING_INTERRUPTED', { tenant, cause })
    })

/** Starts to remove the indexes that no query has used for long, unless the blueprint requires them. */
export async function retireUnusedIndexes(tenant: Tenant & Lease) {
  const unused = await tenant.db.query(
    "select blueprint, number from field_indexes where state = 'ready' and used < ? order by blueprint, number",
    [now() - UNUSED_DAYS * DAY_MS],
  )
  for (const [key, number] of unused as [string, number][])
    await changeIndexes(
      tenant,
      key,
      (model) => isDispensable(model, Number(number)),
      (tx) => tx.query(RETIRE, [key, number]),
    )
}

function isDispensable(model: Model, number: number) {
  const field = model.fields.find((one) => one.number === number)
  return field ? !getIndexReason(model, field) : model.compoundIndexes.some((index) => index.number === number)
}

const MAX_TRIES = 5

/** Changes the indexes of a blueprint if its model allows it, and resumes the builds. */
async function changeIndexes(
  tenant: Tenant,
  key: string,
  isAllowed: (model: Model) => boolean,
  change: (tx: Tx, model: Model) => Promise<unknown>,
) {
  for (let tries = 1; ; tries++) {
    const model = await getModel(tenant, key)
    if (!isAllowed(model)) return
    try {
      await writeInvalidating(tenant, 'blueprints', async (tx) => {
        await requireFreshBlueprint(tx, model)
        await change(tx, model)
        await announceIndexChange(tx, key)
      })
      return resumeIndexing(tenant, key)
    } catch (error) {
      if (!(error instanceof StaleBlueprint) || tries === MAX_TRIES) throw error
      invalidate(tenant, 'blueprints')
    }
  }
}
