import { and, eq, inArray, or } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../accounts/context'
import { now, toIsoString } from '../core/clock'
import { assertIfMatch, etagOf, type HttpContext, setEtag } from '../core/etag'
import { slot } from '../core/extension'
import { badRequest, type FieldError, notFound, Problem } from '../core/problem'
import { isTrue, parseOptional, success } from '../core/shapes'
import { lastEventSeq } from '../jobs/event-dispatcher'
import { deleteQueued } from '../jobs/queue'
import { applyPage, type ListQuery, parseNames, parsePage, respondWithPage } from '../storage/pagination'
import type { Db, Tx } from '../storage/port'
import { getTargetKind, toRunOrderingKey } from './run-job'
import { reschedule } from './schedules'
import type { Filters, IntegrationChange, NewIntegration } from './shapes'
import { type IntegrationRow, integrations } from './tables'
import type { Target } from './targets/index'
import { parseTarget, parseTrigger, prefixPaths } from './validation'

const MAX_INTEGRATIONS = 1_000 // of a tenant

const { _id, name, active, triggerKind, targetKind, source, plugin, user, created, updated } = integrations
const sortable = { _id, name, active, 'trigger.kind': triggerKind, 'target.kind': targetKind, created, updated }

/** A page of integrations, newest first. */
export async function list({ db }: Ctx, query: Filters & ListQuery, answer: HttpContext) {
  const page = parsePage(query, sortable)
  const where = buildFilter(query)
  const rows = await applyPage(page, db.select().from(integrations).where(where))
  return respondWithPage(answer, page, rows.map(toIntegration), () => db.$count(integrations, where))
}

function buildFilter(query: Filters) {
  const anyOf = (column: SQLiteColumn, filter: keyof Filters) => {
    const values = parseNames(query[filter], filter)
    return values && inArray(column, values)
  }
  return and(
    anyOf(triggerKind, 'trigger.kind'),
    anyOf(targetKind, 'target.kind'),
    or(anyOf(triggerKind, 'kind'), anyOf(targetKind, 'kind')),
    parseOptional(query.active) ? eq(active, isTrue(query.active)) : undefined,
    anyOf(source, 'source'),
    anyOf(plugin, 'plugin'),
    anyOf(user, 'user'),
    anyOf(_id, '_id'),
  )
}

/** One integration; throws 404. */
export const get = async ({ db }: Ctx, id: string, answer: HttpContext) =>
  toIntegrationWithEtag(await getIntegration(db, id), answer)

/** A new integration, which listens from now on. @throws 400 also for what is not there, 409 TOO_MANY_INTEGRATIONS */
export async function create(
  ctx: Ctx,
  { name = null, active = true, guest = false, ...input }: NewIntegration,
  answer: HttpContext,
) {
  const { roles = [], workspaceRoles = [], plugin = null } = input
  const [trigger, target, time] = [parseTrigger(input.trigger), parseTarget(input.target), toIsoString(now())]
  const row = await ctx.write(async (tx) => {
    if ((await tx.$count(integrations)) >= MAX_INTEGRATIONS)
      throw new Problem(
        409,
        'TOO_MANY_INTEGRATIONS',
        `A tenant can have at most ${MAX_INTEGRATIONS} integrations. Remove some first.`,
      )
    const row: IntegrationRow = {
      ...{ _id: Bun.randomUUIDv7(), name, active, guest, roles, workspaceRoles, plugin, user: ctx.actor.user },
      ...{ trigger, triggerKind: trigger.kind, target, targetKind: target.kind, source: getSourceId(target) },
      ...{ since: await lastEventSeq(tx), version: 1, created: time, updated: time },
    }
    await assertReferencesExist(tx, row)
    await tx.insert(integrations).values(row)
    await reschedule(ctx, tx, row)
    return row
  })
  return toIntegrationWithEtag(row, answer)
}

/**
 * Changes what it mentions, at once: by another trigger nothing is run that waited by the one before. Who switches it on
 * has it listen from now on. What follows from what is there is a function of it, so that no change meanwhile is lost.
 * @throws 400, 404, 412 when stale
 */
export async function change(
  ctx: Ctx,
  id: string,
  changes: IntegrationChange | ((before: IntegrationRow) => IntegrationChange),
  answer: HttpContext,
) {
  const row = await ctx.write(async (tx) => {
    const before = await getForUpdate(tx, id, answer)
    const input = typeof changes === 'function' ? changes(before) : changes
    const trigger = input.trigger ? parseTrigger(input.trigger) : before.trigger
    const target = input.target ? parseTarget(input.target) : before.target
    const { name, active, guest, roles, workspaceRoles, plugin } = { ...before, ...input }
    const hasSameTrigger = active === before.active && Bun.deepEquals(trigger, before.trigger)
    const hasSameReferences = plugin === before.plugin && Bun.deepEquals(target, before.target)
    const after: IntegrationRow = {
      ...{ ...before, name, active, guest, roles, workspaceRoles, plugin },
      ...{ trigger, triggerKind: trigger.kind, target, targetKind: target.kind, source: getSourceId(target) },
      ...{
        since: hasSameTrigger ? before.since : await lastEventSeq(tx),
        version: before.version + 1,
        updated: toIsoString(now()),
      },
    }
    // What is lost meanwhile stands in nobody's way who changes something else, or switches it off.
    if (!hasSameReferences) await assertReferencesExist(tx, after)
    await tx.update(integrations).set(after).where(eq(_id, id))
    if (hasSameTrigger) return after
    await deleteQueued(tx, toRunOrderingKey(id))
    await reschedule(ctx, tx, after)
    return after
  })
  return toIntegrationWithEtag(row, answer)
}

/** Removes an integration; nothing is run any more that waited. @throws 404, 409 INTEGRATION_IN_USE, 412 when stale */
export async function remove(ctx: Ctx, id: string, answer: HttpContext) {
  await ctx.write(async (tx) => {
    const row = await getForUpdate(tx, id, answer)
    await assertNotOffered(tx, id)
    await tx.delete(integrations).where(eq(_id, id))
    await deleteQueued(tx, toRunOrderingKey(id))
    await reschedule(ctx, tx, { ...row, active: false })
  })
  return success
}

/** A tool that an AI is offered is not taken from it. @throws 409 */
async function assertNotOffered(tx: Tx, id: string) {
  const rows = await tx.select().from(integrations).where(eq(targetKind, 'ai')).orderBy(_id)
  const agent = rows.find(({ target }) => target.kind === 'ai' && target.tools?.includes(id))
  if (!agent) return
  const message = `The integration is a tool of ${describeIntegration(agent)}. Remove it from there first.`
  throw new Problem(409, 'INTEGRATION_IN_USE', message)
}

const describeIntegration = ({ _id, name }: Pick<IntegrationRow, '_id' | 'name'>) => `the integration "${name || _id}"`

/** What goes by a connection. */
export async function listIntegrationsUsing(tx: Tx, connection: string): Promise<string[]> {
  const rows = await tx.select({ _id, name }).from(integrations).where(eq(source, connection)).orderBy(_id)
  return rows.map(describeIntegration)
}

/** The first integration that runs a lambda, in words; undefined without any. */
export async function findLambdaUser(tx: Tx, lambda: string): Promise<string | undefined> {
  const rows = await tx
    .select({ _id, name, target: integrations.target })
    .from(integrations)
    .where(eq(targetKind, 'lambda'))
  const integration = rows.find(({ target }) => 'lambdaId' in target && target.lambdaId === lambda)
  return integration && `the integration ${integration.name ?? integration._id}`
}

/**
 * Refuses a new integration that makes no sense. What it refers to is looked for only for those who administer
 * integrations: others are not told what there is. @throws 400
 */
export async function assertValidIntegration(ctx: Ctx, { plugin = null, ...input }: NewIntegration) {
  parseTrigger(input.trigger)
  const target = parseTarget(input.target)
  if (ctx.actor.privileged)
    await ctx.write((tx) => assertReferencesExist(tx, { plugin, target, targetKind: target.kind }))
}

/** Tells whether there is a plugin with an id. */
export const pluginLookup = slot<(tx: Tx, id: string) => Promise<boolean>>('plugins by id')

/** Refuses what refers to something that is not there. @throws 400 */
async function assertReferencesExist(tx: Tx, row: Pick<IntegrationRow, 'plugin' | 'target' | 'targetKind'>) {
  const kind = getTargetKind(row)
  const findToolIds = async (ids: string[]) => {
    const rows = ids.length ? await tx.select({ _id, triggerKind }).from(integrations).where(inArray(_id, ids)) : []
    return rows.filter(({ triggerKind }) => triggerKind === 'tool').map(({ _id }) => _id)
  }
  const errors: FieldError[] = prefixPaths('/target', await kind.validate(tx, row.target as never, findToolIds))
  if (row.plugin !== null && !(await pluginLookup()(tx, row.plugin)))
    errors.push({ path: '/plugin', message: 'There is no plugin with this id.' })
  if (errors.length) badRequest(...errors)
}

const getSourceId = (target: Target) => ('sourceId' in target && target.sourceId) || null

/** An integration. @throws 404 */
export const getIntegration = async (db: Pick<Db, 'select'>, id: string): Promise<IntegrationRow> =>
  (await db.select().from(integrations).where(eq(_id, id)).get()) ?? notFound('integration')

/** The integration, if it still is what the caller has read. */
async function getForUpdate(db: Pick<Db, 'select'>, id: string, { request }: HttpContext) {
  const row = await getIntegration(db, id)
  assertIfMatch(request, etagOf(row.version, row.updated))
  return row
}

function toIntegrationWithEtag(row: IntegrationRow, answer: HttpContext) {
  setEtag(answer, etagOf(row.version, row.updated))
  return toIntegration(row)
}

const toIntegration = ({
  _id,
  name,
  active,
  guest,
  trigger,
  target,
  roles,
  workspaceRoles,
  ...row
}: IntegrationRow) => {
  const { plugin, user, created, updated } = row
  return { _id, name, active, guest, trigger, target, roles, workspaceRoles, plugin, user, created, updated }
}
