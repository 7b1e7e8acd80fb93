import type { PublicCtx } from '../../accounts/context'
import type { Model } from '../../blueprints/model'
import { currentTrace } from '../../core/trace'
import type { JointWork, Tx } from '../../storage/port'
import type { StoredEntity } from '../store/rows'
import { insertBulk, readStoredByNames } from '../transfer/bulk-insert'
import { SizeLimit } from '../transfer/size-limit'
import { type BlueprintFeatures, type ReadableTargets, requireFreshBlueprint } from './constraints'
import type { EntityDraft } from './insert'

/** Joining saves round trips. Limitations depend on earlier writes, and events name the trace of their request. */
const mayJoin = ({ place }: PublicCtx, { limitations }: Model) =>
  !!place?.cluster && !limitations?.length && !currentTrace()

/** Returns the work that creates an entity together with other queued ones; undefined when its checks depend on these. */
export function createJointly(
  ctx: PublicCtx,
  model: Model,
  draft: EntityDraft,
  readable: ReadableTargets,
): JointWork | undefined {
  if (!mayJoin(ctx, model) || model.fileFields.length) return
  return {
    kind: `create ${nameOf(model)} ${JSON.stringify([...readable.scopes])}`,
    input: draft,
    run: (tx, drafts) => insertBulk(tx, model, drafts as EntityDraft[], readable, new SizeLimit()),
  }
}

/** A change of an entity, which `apply` makes to the stored row. */
type Change<T> = {
  identifier: string
  apply(tx: Tx, before: StoredEntity | undefined, features: Promise<BlueprintFeatures>): Promise<T>
}

/** Returns the work that changes an entity together with other queued ones; undefined when its checks depend on these. */
export function updateJointly<T>(ctx: PublicCtx, model: Model, change: Change<T>): JointWork | undefined {
  if (!mayJoin(ctx, model) || model.fields.some(({ unique }) => unique)) return
  return {
    kind: `update ${nameOf(model)}`,
    input: change,
    run: (tx, changes) => applyAll(tx, model, changes as Change<T>[]),
  }
}

async function applyAll<T>(tx: Tx, model: Model, changes: Change<T>[]): Promise<T[] | undefined> {
  const features = requireFreshBlueprint(tx, model)
  const names = changes.map(({ identifier }) => identifier)
  const [found] = await Promise.all([readStoredByNames(tx, model, names), features])
  const stored = changes.map(({ identifier }) => found.get(identifier))
  // The second change of an entity must see the result of the first.
  if (new Set(stored.map((row) => row?.seq)).size < changes.length) return
  const settled = await Promise.allSettled(changes.map(({ apply }, n) => apply(tx, stored[n], features)))
  return settled.map((one) => {
    if (one.status === 'rejected') throw one.reason
    return one.value
  })
}

/** Returns the identity of a model version: writes of different versions are not joined. */
const nameOf = ({ _id, version, indexing, form }: Model) => `${_id} ${version} ${indexing} ${form}`
