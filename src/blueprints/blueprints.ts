import { and, eq, sql } from 'drizzle-orm'
import type { Static } from 'elysia'
import type { Actor } from '../accounts/actors'
import type { Ctx, OpenCtx } from '../accounts/guard'
import { may } from '../accounts/permissions'
import { iso, now } from '../core/clock'
import { type Answer, etagOf, giveEtag, refuseStale } from '../core/etag'
import { invalid, missing, Problem } from '../core/problem'
import { success } from '../core/shapes'
import { Conflict } from '../storage/errors'
import { answerPage, type Listing, pageOf } from '../storage/lists'
import type { Tx } from '../storage/port'
import { prepared } from '../storage/store'
import { changing, recall } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import { refuseSenseless } from './definition'
import { type Formula, formula } from './formulas/formula'
import { type Model, type ModelField, ready } from './model'
import { concerns, mayRead } from './rules'
import type { Blueprint, BlueprintChange, Definition, NewBlueprint } from './shapes'
import { blueprints, fields } from './tables'

/** What blueprints need to know of their entities, which are kept by those who come after. */
export type Kept = {
  /** Whether the blueprint has any. */
  any(tx: Tx, blueprint: string): Promise<boolean>
  /** Removes them all, a slice at a time. */
  removeAll(ctx: OpenCtx, model: Model): Promise<void>
  /** Undoes what interrupted imports have left. */
  undoForsaken(tenant: Tenant, model: Model): Promise<void>
}
let kept: Kept
export const entitiesAreKeptBy = (keeper: Kept) => {
  kept = keeper
}

const statements = prepared((db) => ({
  byKey: db
    .select()
    .from(blueprints)
    .where(eq(blueprints.key, sql.placeholder('key')))
    .prepare(),
  fieldsOf: db
    .select({ key: fields.key, number: fields.number })
    .from(fields)
    .where(eq(fields.blueprint, sql.placeholder('key')))
    .prepare(),
}))

/** A blueprint ready for use, remembered until it changes, and at once when it is; throws 404. */
export function modelOf(tenant: Tenant, key: string): Model | Promise<Model> {
  const model = recall(tenant, 'blueprints', key, () => load(tenant, key))
  return model instanceof Promise
    ? model.then((model) => model ?? missing('blueprint'))
    : (model ?? missing('blueprint'))
}

/** The blueprints that concern the caller, by key. */
export async function list(ctx: Ctx, query: Listing, answer: Answer) {
  const page = pageOf(query, sortable, 'key')
  const keys = await ctx.db
    .select({ key: blueprints.key })
    .from(blueprints)
    .orderBy(...page.order)
  const models = await Promise.all(keys.map(({ key }) => modelOf(ctx, key)))
  const known = models.filter((model) => mayKnow(model, ctx.actor))
  const some = known.slice(page.offset, page.offset + page.limit + 1).map((model) => shown(model, ctx.actor))
  return answerPage(answer, page, some, async () => known.length)
}

const sortable = {
  _id: blueprints._id,
  key: blueprints.key,
  name: blueprints.name,
  created: blueprints.created,
  updated: blueprints.updated,
}

/** One blueprint; throws 404 also when no rule of it is for the caller. */
export async function get(ctx: OpenCtx, key: string, answer: Answer) {
  const model = await modelOf(ctx, key)
  return mayKnow(model, ctx.actor) ? told(model, ctx.actor, answer) : missing('blueprint')
}

/** A new blueprint. @throws 409 BLUEPRINT_EXISTS, 400 with all that makes no sense. */
export async function create(ctx: Ctx, input: NewBlueprint, answer: Answer) {
  const { key, name, description = '', ...definition } = input
  await refuseSenseless(definition)
  const time = iso(now())
  const row = { key, _id: Bun.randomUUIDv7(), name, description, definition, version: 1, created: time, updated: time }
  const created = changing(ctx, 'blueprints', async (tx) => {
    await refuseUnknownTargets(tx, key, definition)
    await tx.insert(blueprints).values(row)
    await number(tx, key, definition)
  })
  await created.catch((error) => {
    if (error instanceof Conflict)
      throw new Problem(409, 'BLUEPRINT_EXISTS', `There is a blueprint "${key}" already.`, { cause: error })
    throw error
  })
  return told(await modelOf(ctx, key), ctx.actor, answer)
}

/** Changes what it mentions. What existing entities would not fit any more is refused with 409; 412 when stale. */
export async function change(ctx: Ctx, key: string, input: BlueprintChange, answer: Answer) {
  const { name, description, ...parts } = input
  const before = (await statements(ctx.db).byKey.get({ key })) ?? missing('blueprint')
  refuseStale(answer.request, etagOf(before.version, before.updated))
  const definition = { ...before.definition, ...parts }
  await refuseSenseless(definition)
  const fields = { ...(name && { name }), ...(description !== undefined && { description }), definition }
  await changing(ctx, 'blueprints', async (tx) => {
    await refuseUnknownTargets(tx, key, definition, before.definition.fields)
    if (await kept.any(tx, key)) refuseMisfits(before.definition, definition)
    const changed = await tx
      .update(blueprints)
      .set({ ...fields, version: before.version + 1, updated: iso(now()) })
      .where(and(eq(blueprints.key, key), eq(blueprints.version, before.version)))
      .returning()
      .get()
    if (!changed) throw new Problem(409, 'CONFLICT', 'Somebody else changed this blueprint just now. Try again.')
    await number(tx, key, definition)
  })
  return told(await modelOf(ctx, key), ctx.actor, answer)
}

/** Removes a blueprint; with `force` its entities, too. @throws 409 BLUEPRINT_NOT_EMPTY. */
export async function remove(ctx: Ctx, key: string, force: boolean, { request }: Answer) {
  const model = await modelOf(ctx, key)
  refuseStale(request, etagOf(model.version, model.updated))
  if (force) await kept.removeAll(ctx, model)
  await changing(ctx, 'blueprints', async (tx) => {
    const all = await tx.select().from(blueprints)
    const pointing = all.find(
      (other) => other.key !== key && other.definition.fields.some((field) => field.target === key),
    )
    if (!force && pointing)
      throw notEmpty(
        `The blueprint "${pointing.key}" has a relation to this one. Remove that first, or use ?force=true.`,
      )
    if (await kept.any(tx, key))
      throw notEmpty('There are entities of this blueprint. Remove them first, or use ?force=true.')
    await tx.delete(blueprints).where(eq(blueprints.key, key))
  })
  return success
}

const notEmpty = (message: string) => new Problem(409, 'BLUEPRINT_NOT_EMPTY', message)

async function load(tenant: Tenant, key: string): Promise<Model | undefined> {
  const { db } = tenant
  const row = await statements(db).byKey.get({ key })
  if (!row) return
  const numbers = new Map((await statements(db).fieldsOf.all({ key })).map((field) => [field.key, field.number]))
  const { definition, ...rest } = row
  const models = await Promise.all(definition.fields.map((field) => ready(field, numbers.get(field.key) ?? 0)))
  const model = {
    ...definition,
    ...rest,
    fields: models,
    field: new Map(models.map((field) => [field.key, field])),
    formulas: await formulasOf(models, definition.computed),
    guarded: models.some(({ readRoles }) => readRoles?.length),
  }
  await kept.undoForsaken(tenant, model)
  return model
}

/** One that was good when it was saved must not make its blueprint unusable. */
const failing = (error: unknown): Formula => ({ of: () => Promise.reject(error) })

const formulasOf = (fields: ModelField[], computed: Definition['computed'] = {}) =>
  Promise.all(
    fields
      .filter(({ key }) => Object.hasOwn(computed, key))
      .map(async (field) => ({ field, formula: await formula(computed[field.key]!).catch(failing) })),
  )

/** Gives each new field its number, and takes back those of fields that are gone. */
async function number(tx: Tx, blueprint: string, definition: Definition) {
  const have = await tx.select().from(fields).where(eq(fields.blueprint, blueprint))
  const keys = definition.fields.map(({ key }) => key)
  for (const { number, key } of have) if (!keys.includes(key)) await tx.delete(fields).where(eq(fields.number, number))
  for (const key of keys) {
    if (have.some((field) => field.key === key)) continue
    // Not by Drizzle, which would say that the number is null.
    await tx.ask('insert into fields (blueprint, key) values (?, ?)', [blueprint, key])
  }
}

/** Relations lead to blueprints that exist; those that were there before may have lost theirs. */
async function refuseUnknownTargets(tx: Tx, own: string, { fields }: Definition, before: Definition['fields'] = []) {
  for (const [index, { key, target }] of fields.entries()) {
    if (!target || target === own || before.some((old) => old.key === key && old.target === target)) continue
    if (await tx.select({ key: blueprints.key }).from(blueprints).where(eq(blueprints.key, target)).get()) continue
    invalid({
      path: `/fields/${index}/target`,
      message: `"${key}" points to the blueprint "${target}", which does not exist.`,
    })
  }
}

/** With entities there, nothing may change by which they would have to be rewritten or indexed anew. */
function refuseMisfits(before: Definition, after: Definition) {
  for (const old of before.fields) {
    const field = after.fields.find(({ key }) => key === old.key)
    if (!field) throw inUse(old.key, 'cannot be removed')
    if (field.type !== old.type || !!field.multi !== !!old.multi) throw inUse(old.key, 'cannot change its type')
    if (field.target !== old.target) throw inUse(old.key, 'cannot point to other entities')
    if (field.unique && !old.unique) throw inUse(old.key, 'cannot become unique')
    if ((field.indexed !== false) !== (old.indexed !== false)) throw inUse(old.key, 'cannot change how it is indexed')
    if (field.required && !old.required) throw needsDefault(old.key)
  }
  for (const field of after.fields)
    if (field.required && !before.fields.some(({ key }) => key === field.key)) throw needsDefault(field.key)
}

const inUse = (key: string, what: string) =>
  new Problem(409, 'FIELD_IN_USE', `The field "${key}" ${what} while there are entities of this blueprint.`)
const needsDefault = (key: string) =>
  new Problem(409, 'FIELD_NEEDS_DEFAULT', `The field "${key}" cannot be required, because existing entities lack it.`)

const mayKnow = (model: Model, actor: Actor | undefined) => (actor && may(actor, 'editor')) || concerns(model, actor)

function told(model: Model, actor: Actor | undefined, answer: Answer) {
  giveEtag(answer, etagOf(model.version, model.updated))
  return shown(model, actor)
}

/** Those who edit see everything; others neither rules nor what the fields they can't read are like. */
function shown(model: Model, actor: Actor | undefined): Static<typeof Blueprint> {
  const editor = actor && may(actor, 'editor')
  const { _id, key, name, description, created, updated, computed } = model
  const fields = model.fields.filter((field) => editor || mayRead(field, actor))
  const known = { _id, key, name, description, fields: fields.map(plain), created, updated }
  if (!editor) return known
  const { permissions = [], permissionScope = 'user', limitations = [], dispatchers = {} } = model
  return { ...known, permissions, permissionScope, limitations, computed: computed ?? {}, dispatchers }
}

const plain = ({ number: _, kind: __, flaws: ___, ...field }: Model['fields'][number]) => ({
  ...field,
  required: field.required ?? false,
})
