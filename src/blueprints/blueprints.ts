import { eq, type SQL } from 'drizzle-orm'
import type { Static } from 'elysia'
import type { Actor } from '../accounts/actors'
import type { Ctx, OpenCtx } from '../accounts/guard'
import { noteCreated } from '../accounts/idempotency/claim'
import { may } from '../accounts/permissions'
import { iso, now } from '../core/clock'
import { type Answer, etagOf, giveEtag, refuseStale } from '../core/etag'
import { invalid, missing, Problem } from '../core/problem'
import { success } from '../core/shapes'
import { Conflict } from '../storage/errors'
import { answerPage, type Listing, pageOf } from '../storage/lists'
import type { Tx } from '../storage/port'
import { changing, recall } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import { carried } from './alteration'
import { refuseSenseless } from './definition'
import { kept } from './kept'
import { alterationRow, load } from './loading'
import type { Model } from './model'
import { number } from './numbers'
import { concerns, mayRead } from './rules'
import type { Blueprint, Definition, NewBlueprint } from './shapes'
import { blueprints } from './tables'
import { warningsOf } from './warnings'

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
  const known = await knownTo(ctx, ...page.order)
  const some = known.slice(page.offset, page.offset + page.limit + 1)
  return answerPage(answer, page, await Promise.all(some.map((model) => shown(ctx, model))), async () => known.length)
}

/** The blueprints that concern the caller. */
export async function knownTo(ctx: OpenCtx, ...order: SQL[]): Promise<Model[]> {
  const keys = await ctx.db
    .select({ key: blueprints.key })
    .from(blueprints)
    .orderBy(...order)
  const models = await Promise.all(keys.map(({ key }) => modelOf(ctx, key)))
  return models.filter((model) => mayKnow(model, ctx.actor))
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
  return mayKnow(model, ctx.actor) ? told(ctx, model, answer) : missing('blueprint')
}

/** A new blueprint. @throws 409 BLUEPRINT_EXISTS, 400 with all that makes no sense. */
export async function create(ctx: Ctx, input: NewBlueprint, answer: Answer) {
  const { key, name, description = '', ...definition } = input
  await refuseUnfit(definition)
  const time = iso(now())
  const row = {
    key,
    _id: Bun.randomUUIDv7(),
    name,
    description,
    definition,
    version: 1,
    form: 0,
    created: time,
    updated: time,
  }
  const created = changing(ctx, 'blueprints', async (tx) => {
    await refuseUnknownTargets(tx, key, definition)
    await tx.insert(blueprints).values(row)
    await noteCreated(tx, `/api/blueprints/${key}`)
    await number(tx, key, definition)
  })
  await created.catch((error) => {
    if (error instanceof Conflict)
      throw new Problem(409, 'BLUEPRINT_EXISTS', `There is a blueprint "${key}" already.`, { cause: error })
    throw error
  })
  return told(ctx, await modelOf(ctx, key), answer)
}

/** Refuses a new blueprint that makes no sense, whatever others there are. @throws 400 with all that is wrong with it */
export async function refuseUnfit(definition: Definition) {
  carried({ fields: [] }, definition.fields)
  await refuseSenseless(definition)
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

/** Relations lead to blueprints that exist; those that were there before may have lost theirs. */
export async function refuseUnknownTargets(
  tx: Tx,
  own: string,
  { fields }: Definition,
  before: Definition['fields'] = [],
) {
  for (const [index, { key, target }] of fields.entries()) {
    if (!target || target === own || before.some((old) => old.key === key && old.target === target)) continue
    if (await tx.select({ key: blueprints.key }).from(blueprints).where(eq(blueprints.key, target)).get()) continue
    invalid({
      path: `/fields/${index}/target`,
      message: `"${key}" points to the blueprint "${target}", which does not exist.`,
    })
  }
}

const mayKnow = (model: Model, actor: Actor | undefined) => isEditor(actor) || concerns(model, actor)

/** What the caller may know of it; with how far it is altered, for those who edit. */
export async function told(ctx: OpenCtx, model: Model, answer: Answer): Promise<Static<typeof Blueprint>> {
  giveEtag(answer, etagOf(model.version, model.updated))
  const blueprint = await shown(ctx, model)
  const row = model.alteration && isEditor(ctx.actor) ? await alterationRow(ctx, model.key) : undefined
  if (!row) return blueprint
  const { state, done, total, since, problem } = row
  return { ...blueprint, alteration: { state, done, total, since, ...(problem && { problem }) } }
}

const isEditor = (actor: Actor | undefined) => !!actor && may(actor, 'editor')

/** Those who edit see everything; others neither rules nor what the fields they can't read are like. */
async function shown(ctx: OpenCtx, model: Model): Promise<Static<typeof Blueprint>> {
  const { actor } = ctx
  const editor = isEditor(actor)
  const { _id, key, name, description, created, updated, computed } = model
  const fields = model.fields.filter((field) => editor || mayRead(field, actor))
  const known = { _id, key, name, description, fields: fields.map(plain), created, updated }
  if (!editor) return known
  const { permissions = [], permissionScope = 'user', limitations = [], dispatchers = {} } = model
  const warnings = await warningsOf(ctx, model)
  return { ...known, permissions, permissionScope, limitations, computed: computed ?? {}, dispatchers, warnings }
}

const plain = ({ number: _, kind: __, flaws: ___, ...field }: Model['fields'][number]) => ({
  ...field,
  required: field.required ?? false,
})
