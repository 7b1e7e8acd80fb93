import { and, eq, inArray, or } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../accounts/context'
import { now, toIsoString } from '../core/clock'
import { assertIfMatch, etagOf } from '../core/etag'
import { slot } from '../core/extension'
import { badRequest, type FieldError, notFound, Problem } from '../core/problem'
import type { IfMatch } from '../core/response-headers'
import { isTrue, parseOptional, success } from '../core/shapes'
import { listPatternWarnings } from '../events/pattern-warnings'
import { lastEventSeq } from '../jobs/event-dispatcher'
import { deleteQueued } from '../jobs/queue'
import { type GrowingListQuery, parseNames, parsePage, readBoundedPage, toGrowingListPage } from '../storage/pagination'
import type { Db, Tx } from '../storage/port'
import { writeInvalidating } from '../tenancy/cache'
import { toRunOrderingKey } from './run-job'
import { reschedule } from './schedules'
import type { Filters, IntegrationChange, NewIntegration } from './shapes'
import { type IntegrationRow, integrations } from './tables'
import { type Target, validateTarget } from './targets/index'
import { storedReferences } from './targets/stored-references'
import { parseTarget, parseTrigger, prefixPaths } from './validation'

const MAX_INTEGRATIONS = 1_000 // per tenant

const { _id, name, active, triggerKind, targetKind, source, plugin, user, created, updated } = integrations
const sortable = { _id, name, active, 'trigger.kind': triggerKind, 'target.kind': targetKind, created, updated }

/** Returns a page of integrations, newest first. @throws 400 */
export async function list({ db }: Ctx, query: Filters & GrowingListQuery) {
  const requested = parsePage(query, sortable)
  const where = buildFilter(query)
  const { page, rows } = await readBoundedPage(requested, () =>
    db.select().from(integrations).where(and(where, requested.after)),
  )
  return toGrowingListPage(page, rows, () => db.$count(integrations, where), toIntegration)
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

/** Returns an integration. @throws 404 INTEGRATION_NOT_FOUND */
export const get = async ({ db }: Ctx, id: string) => toVersioned({ db }, await getIntegration(db, id))

/**
 * Creates an integration, which receives events from now on.
 * @throws 400, also for missing references, 409 TOO_MANY_INTEGRATIONS
 */
export async function create(ctx: Ctx, { name = null, active = true, guest = false, ...input }: NewIntegration) {
  const { roles = [], workspaceRoles = [], plugin = null } = input
  const [trigger, target, time] = [parseTrigger(input.trigger), parseTarget(input.target), toIsoString(now())]
  const row = await writeInvalidating(ctx, 'integrations', async (tx) => {
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
  return toVersioned(ctx, row)
}

/**
 * Changes the fields in `changes`. A change of `trigger` or `active` deletes queued runs, and the integration then
 * receives only later events. `changes` may be a function of the current row, so that no concurrent change is lost.
 * @throws 400, 404, 412 when stale
 */
export async function change(
  ctx: Ctx,
  id: string,
  changes: IntegrationChange | ((before: IntegrationRow) => IntegrationChange),
  options: IfMatch,
) {
  const row = await writeInvalidating(ctx, 'integrations', async (tx) => {
    const before = await getForUpdate(tx, id, options)
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
    // Only changed references are checked: a reference that broke later must not block other changes.
    if (!hasSameReferences) await assertReferencesExist(tx, after)
    await tx.update(integrations).set(after).where(eq(_id, id))
    if (hasSameTrigger) return after
    await deleteQueued(tx, toRunOrderingKey(id))
    await reschedule(ctx, tx, after)
    return after
  })
  return toVersioned(ctx, row)
}

/** Removes an integration and its queued runs. @throws 404, 409 INTEGRATION_IN_USE, 412 when stale */
export async function remove(ctx: Ctx, id: string, options: IfMatch) {
  await writeInvalidating(ctx, 'integrations', async (tx) => {
    const row = await getForUpdate(tx, id, options)
    await assertNotOffered(tx, id)
    await tx.delete(integrations).where(eq(_id, id))
    await deleteQueued(tx, toRunOrderingKey(id))
    await reschedule(ctx, tx, { ...row, active: false })
  })
  return success
}

/** @throws 409 INTEGRATION_IN_USE when it is a tool of an integration of the kind `ai` */
async function assertNotOffered(tx: Tx, id: string) {
  const rows = await tx.select().from(integrations).where(eq(targetKind, 'ai')).orderBy(_id)
  const agent = rows.find(({ target }) => target.kind === 'ai' && target.tools?.includes(id))
  if (!agent) return
  const message = `The integration is a tool of ${describeIntegration(agent)}. Remove it from there first.`
  throw new Problem(409, 'INTEGRATION_IN_USE', message)
}

const describeIntegration = ({ _id, name }: Pick<IntegrationRow, '_id' | 'name'>) => `the integration "${name || _id}"`

/** Returns descriptions of the integrations that use a connection. */
export async function listIntegrationsUsing(tx: Tx, connection: string): Promise<string[]> {
  const rows = await tx.select({ _id, name }).from(integrations).where(eq(source, connection)).orderBy(_id)
  return rows.map(describeIntegration)
}

/** Returns a description of the first integration that runs a lambda, or undefined. */
export async function findLambdaUser(tx: Tx, lambda: string): Promise<string | undefined> {
  const rows = await tx
    .select({ _id, name, target: integrations.target })
    .from(integrations)
    .where(eq(targetKind, 'lambda'))
  const integration = rows.find(({ target }) => 'lambdaId' in target && target.lambdaId === lambda)
  return integration && describeIntegration(integration)
}

/**
 * Checks a new integration without creating it. References are checked only for privileged callers, because others must
 * not learn what exists. @throws 400
 */
export async function assertValidIntegration(ctx: Ctx, { plugin = null, ...input }: NewIntegration) {
  parseTrigger(input.trigger)
  const target = parseTarget(input.target)
  if (ctx.actor.privileged) await ctx.write((tx) => assertReferencesExist(tx, { plugin, target }))
}

/** Returns whether there is a plugin with an id. */
export const pluginLookup = slot<(tx: Tx, id: string) => Promise<boolean>>('plugins by id')

/** @throws 400 for each reference to something that does not exist */
async function assertReferencesExist(tx: Tx, row: Pick<IntegrationRow, 'plugin' | 'target'>) {
  const errors: FieldError[] = prefixPaths('/target', await validateTarget(storedReferences(tx), row.target))
  if (row.plugin !== null && !(await pluginLookup()(tx, row.plugin)))
    errors.push({ path: '/plugin', message: 'There is no plugin with this id.' })
  if (errors.length) badRequest(...errors)
}

const getSourceId = (target: Target) => ('sourceId' in target && target.sourceId) || null

/** Returns the row of an integration. @throws 404 INTEGRATION_NOT_FOUND */
export const getIntegration = async (db: Pick<Db, 'select'>, id: string): Promise<IntegrationRow> =>
  (await db.select().from(integrations).where(eq(_id, id)).get()) ?? notFound('integration')

/** Returns the integration. @throws 404, 412 when it has changed since the caller read it */
async function getForUpdate(db: Pick<Db, 'select'>, id: string, { ifMatch }: IfMatch) {
  const row = await getIntegration(db, id)
  assertIfMatch(ifMatch, etagOf(row.version, row.updated))
  return row
}

const PATTERN_PATHS = { source: '/trigger/source', kind: '/trigger/eventKind', eventName: '/trigger/eventName' }

/** Returns an integration and its version, with a warning if nothing records the events that it waits for. */
async function toVersioned(ctx: Pick<Ctx, 'db'>, row: IntegrationRow) {
  const { trigger, version, updated } = row
  const patterns =
    trigger.kind === 'event'
      ? [{ source: trigger.source, kind: trigger.eventKind, eventName: trigger.eventName, paths: PATTERN_PATHS }]
      : []
  const warnings = await listPatternWarnings(ctx, patterns)
  const value = { ...toIntegration(row), ...(warnings.length && { warnings }) }
  return { value, version: etagOf(version, updated) }
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
