import { and, eq, inArray, or } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../../accounts/guard'
import { iso, now } from '../../core/clock'
import { type Answer, etagOf, giveEtag, refuseStale } from '../../core/etag'
import { type Flaw, invalid, missing, Problem } from '../../core/problem'
import { given, isOn, success } from '../../core/shapes'
import { newestEvent } from '../../jobs/fanout'
import { discard } from '../../jobs/queue'
import { answerPage, type Listing, namesOf, paged, pageOf } from '../../storage/lists'
import type { Db, Tx } from '../../storage/port'
import { plugins } from '../tables'
import { below, fittingTarget, fittingTrigger } from './fitting'
import { laneOf, targetOf } from './running'
import { arrange } from './schedules'
import type { Filters, IntegrationChange, NewIntegration } from './shapes'
import { integrations, type Row } from './tables'
import type { Target } from './targets'

const MOST = 1_000 // of a tenant

const { _id, name, active, triggerKind, targetKind, source, plugin, user, created, updated } = integrations
const sortable = { _id, name, active, 'trigger.kind': triggerKind, 'target.kind': targetKind, created, updated }

/** A page of integrations, newest first. */
export async function list({ db }: Ctx, query: Filters & Listing, answer: Answer) {
  const page = pageOf(query, sortable)
  const where = conditionOf(query)
  const rows = await paged(page, db.select().from(integrations).where(where))
  return answerPage(answer, page, rows.map(shown), () => db.$count(integrations, where))
}

function conditionOf(query: Filters) {
  const anyOf = (column: SQLiteColumn, filter: keyof Filters) => {
    const values = namesOf(query[filter], filter)
    return values && inArray(column, values)
  }
  return and(
    anyOf(triggerKind, 'trigger.kind'),
    anyOf(targetKind, 'target.kind'),
    or(anyOf(triggerKind, 'kind'), anyOf(targetKind, 'kind')),
    given(query.active) ? eq(active, isOn(query.active)) : undefined,
    anyOf(source, 'source'),
    anyOf(plugin, 'plugin'),
    anyOf(user, 'user'),
    anyOf(_id, '_id'),
  )
}

/** One integration; throws 404. */
export const get = async ({ db }: Ctx, id: string, answer: Answer) => told(await found(db, id), answer)

/** A new integration, which listens from now on. @throws 400 also for what is not there, 409 TOO_MANY_INTEGRATIONS */
export async function create(
  ctx: Ctx,
  { name = null, active = true, guest = false, ...input }: NewIntegration,
  answer: Answer,
) {
  const { roles = [], workspaceRoles = [], plugin = null } = input
  const [trigger, target, time] = [fittingTrigger(input.trigger), fittingTarget(input.target), iso(now())]
  const row = await ctx.write(async (tx) => {
    if ((await tx.$count(integrations)) >= MOST)
      throw new Problem(409, 'TOO_MANY_INTEGRATIONS', `A tenant has up to ${MOST} integrations. Remove some first.`)
    const row: Row = {
      ...{ _id: Bun.randomUUIDv7(), name, active, guest, roles, workspaceRoles, plugin, user: ctx.actor.user },
      ...{ trigger, triggerKind: trigger.kind, target, targetKind: target.kind, source: sourceOf(target) },
      ...{ since: await newestEvent(tx), version: 1, created: time, updated: time },
    }
    await refuseLost(tx, row)
    await tx.insert(integrations).values(row)
    await arrange(ctx, tx, row)
    return row
  })
  return told(row, answer)
}

/**
 * Changes what it mentions, at once: by another trigger nothing is run that waited by the one before. Who switches it on
 * has it listen from now on. @throws 400, 404, 412 when stale
 */
export async function change(ctx: Ctx, id: string, input: IntegrationChange, answer: Answer) {
  const row = await ctx.write(async (tx) => {
    const before = await current(tx, id, answer)
    const trigger = input.trigger ? fittingTrigger(input.trigger) : before.trigger
    const target = input.target ? fittingTarget(input.target) : before.target
    const { name, active, guest, roles, workspaceRoles, plugin } = { ...before, ...input }
    const same = active === before.active && Bun.deepEquals(trigger, before.trigger)
    const refersAlike = plugin === before.plugin && Bun.deepEquals(target, before.target)
    const after: Row = {
      ...{ ...before, name, active, guest, roles, workspaceRoles, plugin },
      ...{ trigger, triggerKind: trigger.kind, target, targetKind: target.kind, source: sourceOf(target) },
      ...{ since: same ? before.since : await newestEvent(tx), version: before.version + 1, updated: iso(now()) },
    }
    // What is lost meanwhile stands in nobody's way who changes something else, or switches it off.
    if (!refersAlike) await refuseLost(tx, after)
    await tx.update(integrations).set(after).where(eq(_id, id))
    if (same) return after
    await discard(tx, laneOf(id))
    await arrange(ctx, tx, after)
    return after
  })
  return told(row, answer)
}

/** Removes an integration; nothing is run any more that waited. @throws 404, 409 INTEGRATION_IN_USE, 412 when stale */
export async function remove(ctx: Ctx, id: string, answer: Answer) {
  await ctx.write(async (tx) => {
    const row = await current(tx, id, answer)
    await refuseOffered(tx, id)
    await tx.delete(integrations).where(eq(_id, id))
    await discard(tx, laneOf(id))
    await arrange(ctx, tx, { ...row, active: false })
  })
  return success
}

/** A tool that an AI is offered is not taken from it. @throws 409 */
async function refuseOffered(tx: Tx, id: string) {
  const rows = await tx.select().from(integrations).where(eq(targetKind, 'ai')).orderBy(_id)
  const user = rows.find(({ target }) => target.kind === 'ai' && target.tools?.includes(id))
  if (!user) return
  const message = `It is a tool of ${called(user)}. Take it from there first.`
  throw new Problem(409, 'INTEGRATION_IN_USE', message)
}

const called = ({ _id, name }: Pick<Row, '_id' | 'name'>) => `the integration "${name || _id}"`

/** What goes by a connection. */
export async function integrationsBy(tx: Tx, connection: string): Promise<string[]> {
  const rows = await tx.select({ _id, name }).from(integrations).where(eq(source, connection)).orderBy(_id)
  return rows.map(called)
}

/**
 * Refuses a new integration that makes no sense. What it refers to is looked for only for those who administer
 * integrations: others are not told what there is. @throws 400
 */
export async function refuseUnfit(ctx: Ctx, { plugin = null, ...input }: NewIntegration) {
  fittingTrigger(input.trigger)
  const target = fittingTarget(input.target)
  if (ctx.actor.privileged) await ctx.write((tx) => refuseLost(tx, { plugin, target, targetKind: target.kind }))
}

/** Refuses what refers to something that is not there. @throws 400 */
async function refuseLost(tx: Tx, row: Pick<Row, 'plugin' | 'target' | 'targetKind'>) {
  const flaws: Flaw[] = below('/target', await targetOf(row).flaws(tx, row.target as never))
  if (
    row.plugin !== null &&
    !(await tx.select({ _id: plugins._id }).from(plugins).where(eq(plugins._id, row.plugin)).get())
  )
    flaws.push({ path: '/plugin', message: 'There is no plugin with this id.' })
  if (flaws.length) invalid(...flaws)
}

const sourceOf = (target: Target) => ('sourceId' in target && target.sourceId) || null

/** An integration. @throws 404 */
export const found = async (db: Pick<Db, 'select'>, id: string): Promise<Row> =>
  (await db.select().from(integrations).where(eq(_id, id)).get()) ?? missing('integration')

/** The integration, if it still is what the caller has read. */
async function current(db: Pick<Db, 'select'>, id: string, { request }: Answer) {
  const row = await found(db, id)
  refuseStale(request, etagOf(row.version, row.updated))
  return row
}

function told(row: Row, answer: Answer) {
  giveEtag(answer, etagOf(row.version, row.updated))
  return shown(row)
}

const shown = ({ _id, name, active, guest, trigger, target, roles, workspaceRoles, ...row }: Row) => {
  const { plugin, user, created, updated } = row
  return { _id, name, active, guest, trigger, target, roles, workspaceRoles, plugin, user, created, updated }
}
