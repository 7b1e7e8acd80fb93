import { eq, type SQL } from 'drizzle-orm'
import type { Static } from 'elysia'
import type { Actor } from '../accounts/actors'
import type { Ctx, PublicCtx } from '../accounts/context'
import { hasPermission } from '../accounts/permissions'
import { now, toIsoString } from '../core/clock'
import { assertIfMatch, etagOf } from '../core/etag'
import { badRequest, notFound, Problem } from '../core/problem'
import type { IfMatch, Versioned } from '../core/response-headers'
import { success } from '../core/shapes'
import { recordCreatedPath } from '../http/idempotency/claim'
import { reserveQuota } from '../limits/quota-check'
import { Conflict } from '../storage/errors'
import { type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Db, Tx } from '../storage/port'
import { bumpVersion, cached, writeInvalidating } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { validateDefinition } from './definition-validation'
import { entityStore } from './entity-store'
import { assignFieldNumbers } from './field-numbers'
import { nextHistory } from './history'
import type { Model } from './model'
import { findAlterationRow, loadModel } from './model-loader'
import { takeNumber } from './number-sequence'
import { isVisibleTo, mayReadField } from './permissions'
import { assertReferencesCurrent, withReferences } from './references'
import { applyRenames } from './schema-diff'
import type { Blueprint, Definition, NewBlueprint } from './shapes'
import { blueprints } from './tables'
import { listWarnings } from './warnings'

/** Returns the model of a blueprint, synchronously when it is cached. @throws 404 BLUEPRINT_NOT_FOUND */
export function getModel(tenant: Tenant, key: string): Model | Promise<Model> {
  const model = cached(tenant, 'blueprints', key, () => loadModel(tenant, key))
  return model instanceof Promise
    ? model.then((model) => model ?? notFound('blueprint'))
    : (model ?? notFound('blueprint'))
}

/** Returns a page of the blueprints that are visible to the caller, by key. */
export async function list(ctx: Ctx, query: ListQuery) {
  const page = parsePage(query, SORTABLE_COLUMNS, 'key')
  const visible = await listVisible(ctx, ...page.order)
  const pageModels = visible.slice(page.offset, page.offset + page.limit + 1)
  const shown = await Promise.all(pageModels.map((model) => toBlueprint(ctx, model)))
  return toListPage(page, shown, async () => visible.length)
}

/** Returns the models of all blueprints that are visible to the caller. */
export async function listVisible(ctx: PublicCtx, ...order: SQL[]): Promise<Model[]> {
  const keys = await ctx.db
    .select({ key: blueprints.key })
    .from(blueprints)
    .orderBy(...order)
  const models = await Promise.all(keys.map(({ key }) => getModel(ctx, key)))
  return models.filter((model) => maySee(model, ctx.actor))
}

const SORTABLE_COLUMNS = {
  _id: blueprints._id,
  key: blueprints.key,
  name: blueprints.name,
  created: blueprints.created,
  updated: blueprints.updated,
}

/** Returns a blueprint. @throws 404, also when none of its rules applies to the caller */
export async function get(ctx: PublicCtx, key: string) {
  const model = await getModel(ctx, key)
  return maySee(model, ctx.actor) ? toVersionedBlueprint(ctx, model) : notFound('blueprint')
}

/** Creates a blueprint. @throws 400 with every error, 403 QUOTA_EXCEEDED, 409 BLUEPRINT_EXISTS */
export async function create(ctx: Ctx, input: NewBlueprint) {
  using reservation = await reserveQuota(ctx, 'blueprints', 1)
  const created = await insert(ctx, input)
  reservation?.keep()
  return created
}

/** Creates a blueprint that no quota counts. @throws 400 with every error, 409 BLUEPRINT_EXISTS */
export async function insert(ctx: Ctx, input: NewBlueprint) {
  const { key, name, description = '', ...definition } = input
  await validateNew(definition)
  const time = toIsoString(now())
  const row = {
    key,
    _id: Bun.randomUUIDv7(),
    name,
    description,
    definition,
    version: 1,
    form: 0,
    indexing: 0,
    created: time,
    updated: time,
  }
  const created = writeInvalidating(ctx, 'blueprints', async (tx) => {
    await assertTargetsExist(tx, key, definition)
    const code = `${await takeNumber(tx, 'blueprint codes')}`
    await tx.insert(blueprints).values({ ...row, code, ...(await nextHistory(tx, undefined, definition)) })
    await recordCreatedPath(tx, `/api/blueprints/${key}`)
    await assignFieldNumbers(tx, key, definition)
  })
  await created.catch((error) => {
    if (error instanceof Conflict)
      throw new Problem(409, 'BLUEPRINT_EXISTS', `A blueprint "${key}" already exists.`, { cause: error })
    throw error
  })
  return toVersionedBlueprint(ctx, await getModel(ctx, key))
}

/** Returns how many blueprints a tenant has. */
export const countBlueprints = ({ db }: Tenant) => db.$count(blueprints)

/** Validates a new blueprint without regard to other blueprints. @throws 400 with every error */
export async function validateNew(definition: Definition) {
  applyRenames({ fields: [] }, definition.fields)
  await validateDefinition(definition)
}

/** Removes a blueprint, and with `force` also its entities. @throws 404, 409 BLUEPRINT_NOT_EMPTY, 412 when stale */
export async function remove(ctx: Ctx, key: string, { force, ifMatch }: { force: boolean } & IfMatch) {
  await assertUnchanged(ctx.db, key, ifMatch)
  await (force ? removeWithEntities : removeEmpty)(ctx, key, ifMatch)
  return success
}

const removeEmpty = (ctx: Ctx, key: string, ifMatch: IfMatch['ifMatch']) =>
  withReferences(ctx.db, (references) =>
    writeInvalidating(ctx, 'blueprints', async (tx) => {
      await assertReferencesCurrent(tx, references)
      // Another request may have changed or removed it meanwhile.
      await assertUnchanged(tx, key, ifMatch)
      const pointing = references.byTarget.get(key)?.find(({ blueprint }) => blueprint !== key)
      if (pointing) throw pointedToProblem(pointing.blueprint)
      await assertEmpty(tx, key)
      await tx.delete(blueprints).where(eq(blueprints.key, key))
    }),
  )

/** Removes a blueprint together with its last entities, because others may create entities until then. */
async function removeWithEntities(ctx: Ctx, key: string, ifMatch: IfMatch['ifMatch']) {
  let isRemoved = false
  const removeRow = async (tx: Tx) => {
    if (isRemoved) return
    await assertUnchanged(tx, key, ifMatch)
    await tx.delete(blueprints).where(eq(blueprints.key, key))
    await bumpVersion(tx, 'blueprints')
    tx.afterCommit(() => {
      isRemoved = true
    })
  }
  await entityStore().removeAll(ctx, await getModel(ctx, key), removeRow)
}

/** Returns a 409 for a blueprint that another one has a relation to. */
export const pointedToProblem = (pointing: string) =>
  notEmptyProblem(`The blueprint "${pointing}" has a relation to this one. Remove that first, or use ?force=true.`)

/** @throws 409 BLUEPRINT_NOT_EMPTY when a blueprint has entities */
export async function assertEmpty(db: Db, key: string) {
  if (await entityStore().hasEntities(db, key))
    throw notEmptyProblem('This blueprint still has entities. Delete them first, or use ?force=true.')
}

/** @throws 404, 412 when the blueprint has changed since the caller read it */
async function assertUnchanged(db: Db, key: string, ifMatch: IfMatch['ifMatch']) {
  const { version, updated } = blueprints
  const row = await db.select({ version, updated }).from(blueprints).where(eq(blueprints.key, key)).get()
  assertIfMatch(ifMatch, row ? etagOf(row.version, row.updated) : notFound('blueprint'))
}

const notEmptyProblem = (message: string) => new Problem(409, 'BLUEPRINT_NOT_EMPTY', message)

/** @throws 400 when a relation has a target that does not exist. A relation in `before` may have lost its target. */
export async function assertTargetsExist(
  tx: Tx,
  own: string,
  { fields }: Definition,
  before: Definition['fields'] = [],
) {
  for (const [index, { key, target }] of fields.entries()) {
    if (!target || target === own || before.some((old) => old.key === key && old.target === target)) continue
    if (await tx.select({ key: blueprints.key }).from(blueprints).where(eq(blueprints.key, target)).get()) continue
    badRequest({
      path: `/fields/${index}/target`,
      message: `"${key}" points to the blueprint "${target}", which does not exist.`,
    })
  }
}

const maySee = (model: Model, actor: Actor | undefined) => isEditor(actor) || isVisibleTo(model, actor)

/** Returns what the caller may see of a blueprint, and its version; for editors with the progress of its alteration. */
export async function toVersionedBlueprint(ctx: PublicCtx, model: Model): Promise<Versioned<Static<typeof Blueprint>>> {
  const version = etagOf(model.version, model.updated)
  const value = await toBlueprint(ctx, model)
  const row = model.alteration && isEditor(ctx.actor) ? await findAlterationRow(ctx, model.key) : undefined
  if (!row) return { value, version }
  const { state, done, total, since, problem } = row
  return { value: { ...value, alteration: { state, done, total, since, ...(problem && { problem }) } }, version }
}

const isEditor = (actor: Actor | undefined) => !!actor && hasPermission(actor, 'editor')

/** Editors see everything; other callers see neither the rules nor the fields that they may not read. */
async function toBlueprint(ctx: PublicCtx, model: Model): Promise<Static<typeof Blueprint>> {
  const { actor } = ctx
  const editor = isEditor(actor)
  const { _id, key, name, description, created, updated, computed } = model
  const fields = model.fields.filter((field) => editor || mayReadField(field, actor))
  const summary = { _id, key, name, description, fields: fields.map(toField), created, updated }
  if (!editor) return summary
  const { permissions = [], permissionScope = 'user', limitations = [], dispatchers = {}, history } = model
  const warnings = await listWarnings(ctx, model)
  return {
    ...summary,
    permissions,
    permissionScope,
    limitations,
    computed: computed ?? {},
    dispatchers,
    ...(history && { history }),
    warnings,
  }
}

const toField = ({ number: _, kind: __, validate: ___, index: ____, ...field }: Model['fields'][number]) => ({
  ...field,
  required: field.required ?? false,
})
