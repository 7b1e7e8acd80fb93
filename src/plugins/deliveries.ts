import { and, eq, inArray, isNotNull, lt, notInArray } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../accounts/guard'
import { sealed } from '../accounts/vault/tables'
import { DAY, iso, now } from '../core/clock'
import type { Answer } from '../core/etag'
import { missing, Problem } from '../core/problem'
import type { Lease } from '../jobs/holding'
import { toldEvent } from '../jobs/outbox'
import { enqueue, replay as tryAgain } from '../jobs/queue'
import { removeInSlices } from '../jobs/removal'
import { events } from '../jobs/tables'
import { answerGrowingPage, type GrowingListing, paged, pageOf } from '../storage/lists'
import { changing } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import { deliveryOf } from './hearing'
import { found } from './plugins'
import { secretOf } from './secrets'
import type { Delivery, DeliveryFilters } from './shapes'
import { deliveries, plugins } from './tables'

type Row = typeof deliveries.$inferSelect

const { _id, plugin, event, source, kind, eventName, state, status, attempts, created, updated } = deliveries
const sortable = { _id, state, eventName, status, attempts, created, updated }

/** A page of what a plugin was told, the newest first. @throws 404 */
export async function list(
  ctx: Ctx,
  id: string,
  query: GrowingListing & DeliveryFilters,
  answer: Answer,
): Promise<Delivery[]> {
  await found(ctx.db, id)
  const page = pageOf(query, sortable)
  const anyOf = (column: SQLiteColumn, text: string | undefined) =>
    text && text !== 'undefined' ? inArray(column, text.split(',').filter(Boolean)) : undefined
  const those = and(
    eq(plugin, id),
    anyOf(state, query.state),
    anyOf(event, query.event),
    anyOf(source, query.source),
    anyOf(kind, query.kind),
    anyOf(eventName, query.eventName),
  )
  const rows = await paged(page, ctx.db.select().from(deliveries).where(and(those, page.after)))
  return answerGrowingPage(answer, page, rows, () => ctx.db.$count(deliveries, those), shown)
}

/**
 * Sends once more what was sent, or given up; what waits is tried now. It has the same `webhook-id`.
 * @throws 404, 409 NOT_SUBSCRIBED, EVENT_NOT_KEPT
 */
export async function replay(ctx: Ctx, id: string, deliveryId: string): Promise<Delivery> {
  const told = await found(ctx.db, id)
  return ctx.write(async (tx) => {
    const one = and(eq(_id, deliveryId), eq(plugin, id))
    const row = (await tx.select().from(deliveries).where(one).get()) ?? missing('delivery')
    const { hookUrl } = row
    if (!told.active || !told.subscribedEvents.some((entry) => entry.active && entry.hookUrl === hookUrl))
      throw new Problem(
        409,
        'NOT_SUBSCRIBED',
        'Nothing is sent to this address now. Subscribe it, or activate the plugin.',
      )
    if (!(await tryAgain(ctx, tx, deliveryId))) {
      const kept = await tx.select().from(events).where(eq(events._id, row.event)).get()
      if (!kept)
        throw new Problem(409, 'EVENT_NOT_KEPT', 'The event is too old and was removed, so it cannot be sent again.')
      await enqueue(ctx, tx, deliveryOf({ plugin: id, hookUrl, event: toldEvent(kept) }, deliveryId))
    }
    const again = { state: 'waiting' as const, due: null, updated: iso(now()) }
    await tx.update(deliveries).set(again).where(one)
    return shown({ ...row, ...again })
  })
}

function shown({ _id, event, source, kind, eventName, hookUrl, state, attempts, status, ...row }: Row): Delivery {
  const { duration: durationMs, answer, error, due: nextAttempt, created, updated } = row
  const what = { _id, event, source, kind, eventName, hookUrl, state, attempts, status, durationMs, answer, error }
  return { ...what, nextAttempt, created, updated }
}

const KEPT = 30 * DAY

/** Removes what was told a month ago, or to plugins that are gone, and secrets that sign no more. */
export async function removeOld(tenant: Tenant & Lease) {
  const all = (await tenant.db.select({ _id: plugins._id }).from(plugins)).map(({ _id }) => _id)
  for (const those of [lt(updated, iso(now() - KEPT)), all.length ? notInArray(plugin, all) : isNotNull(plugin)])
    await removeInSlices(tenant, deliveries, _id, those)
  const over = lt(plugins.formerUntil, iso(now()))
  if (await tenant.db.$count(plugins, over))
    await changing(tenant, 'plugins', async (tx) => {
      const rows = await tx.update(plugins).set({ formerUntil: null }).where(over).returning({ _id: plugins._id })
      for (const { _id } of rows) {
        const { purpose, owner, name } = secretOf(_id, 'former')
        await tx.delete(sealed).where(and(eq(sealed.purpose, purpose), eq(sealed.owner, owner), eq(sealed.name, name)))
      }
    })
}
