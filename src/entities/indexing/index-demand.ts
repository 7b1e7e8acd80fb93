import { getModel } from '../../blueprints/blueprints'
import { addFieldIndexes, announceIndexChange, getIndexReason, isNeverIndexed } from '../../blueprints/field-indexes'
import type { Model, ModelField } from '../../blueprints/model'
import type { IndexReason } from '../../blueprints/shapes'
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
    changeIndex(
      tenant,
      model.key,
      field.number,
      (_, current) => lacksIndex(current),
      (tx) => addFieldIndexes(tx, model.key, [[field.number, reason]], 'building'),
    ),
  ).finally(() => requested.delete(name))
}

/** Remembers, to the day, that a query uses the index of a field. */
export function noteIndexUse(model: Model, { index, number }: ModelField) {
  if (!index || now() - Date.parse(index.used) < DAY_MS || !Bun.isMainThread) return
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
    await changeIndex(tenant, key, Number(number), isDispensable, (tx) =>
      tx.query("update field_indexes set state = 'retiring' where blueprint = ? and number = ?", [key, number]),
    )
}

const isDispensable = (model: Model, field: ModelField) => !getIndexReason(model, field)

const MAX_TRIES = 5

/** Changes whether a field has an index if its model allows it. The work in the background then follows. */
async function changeIndex(
  tenant: Tenant,
  key: string,
  number: number,
  isAllowed: (model: Model, field: ModelField) => boolean,
  change: (tx: Tx) => Promise<unknown>,
) {
  for (let tries = 1; ; tries++) {
    const model = await getModel(tenant, key)
    const field = model.fields.find((one) => one.number === number)
    if (!field || !isAllowed(model, field)) return
    try {
      await writeInvalidating(tenant, 'blueprints', async (tx) => {
        await requireFreshBlueprint(tx, model)
        await change(tx)
        await announceIndexChange(tx, key)
      })
      return resumeIndexing(tenant, key)
    } catch (error) {
      if (!(error instanceof StaleBlueprint) || tries === MAX_TRIES) throw error
      invalidate(tenant, 'blueprints')
    }
  }
}
