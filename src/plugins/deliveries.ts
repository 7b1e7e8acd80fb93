import { and, eq, inArray, isNotNull, lt, notInArray } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../accounts/context'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { notFound, Problem } from '../core/problem'
import { parseList } from '../core/query-lists'
import type { ListPage } from '../core/response-headers'
import { parseOptional } from '../core/shapes'
import { deleteInBatches } from '../jobs/batch-delete'
import { enqueue, requeue } from '../jobs/queue'
import { events } from '../jobs/tables'
import type { Lease } from '../jobs/with-lease'
import { sealed } from '../platform/vault/tables'
import { applyPage, type GrowingListQuery, parsePage, toGrowingListPage } from '../storage/pagination'
import { writeInvalidating } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { buildDeliveryJob } from './event-subscriber'
import { getPlugin } from './plugins'
import { toSecretRef } from './secrets'
import type { Delivery, DeliveryFilters } from './shapes'
import { deliveries, plugins } from './tables'

type Row = typeof deliveries.$inferSelect

const { _id, plugin, event, source, kind, eventName, state, status, attempts, created, updated } = deliveries
const sortable = { _id, state, eventName, status, attempts, created, updated }

/** Returns a page of the deliveries to a plugin, newest first. @throws 404 PLUGIN_NOT_FOUND */
export async function list(
  ctx: Ctx,
  id: string,
  query: GrowingListQuery & DeliveryFilters,
): Promise<ListPage<Delivery>> {
  await getPlugin(ctx.db, id)
  const page = parsePage(query, sortable)
  const anyOf = (column: SQLiteColumn, name: keyof DeliveryFilters) => {
    const text = parseOptional(query[name])
    return text === undefined ? undefined : inArray(column, parseList(text, name))
  }
  const condition = and(
    eq(plugin, id),
    anyOf(state, 'state'),
    anyOf(event, 'event'),
    anyOf(source, 'source'),
    anyOf(kind, 'kind'),
    anyOf(eventName, 'eventName'),
  )
  const rows = await applyPage(page, ctx.db.select().from(deliveries).where(and(condition, page.after)))
  return toGrowingListPage(page, rows, () => ctx.db.$count(deliveries, condition), toDelivery)
}

/**
 * Sends a finished delivery again with the same `webhook-id`. A waiting delivery becomes due now.
 * @throws 404, 409 NOT_SUBSCRIBED, 409 EVENT_NOT_KEPT when the event has been removed
 */
export async function replay(ctx: Ctx, id: string, deliveryId: string): Promise<Delivery> {
  const pluginRow = await getPlugin(ctx.db, id)
  return ctx.write(async (tx) => {
    const condition = and(eq(_id, deliveryId), eq(plugin, id))
    const row = (await tx.select().from(deliveries).where(condition).get()) ?? notFound('delivery')
    const { hookUrl } = row
    if (!pluginRow.active || !pluginRow.subscribedEvents.some((entry) => entry.active && entry.hookUrl === hookUrl))
      throw new Problem(
        409,
        'NOT_SUBSCRIBED',
        'No events are sent to this URL. Activate the plugin, or add an active subscription for it.',
      )
    if (!(await tx.$count(events, eq(events._id, row.event))))
      throw new Problem(409, 'EVENT_NOT_KEPT', 'The event is too old and was removed, so it cannot be sent again.')
    if (!(await requeue(ctx, tx, deliveryId))) {
      const { event: _id, source, kind, eventName } = row
      const eventRef = { _id, source, kind, eventName }
      await enqueue(ctx, tx, buildDeliveryJob({ plugin: id, hookUrl, event: eventRef }, deliveryId))
    }
    const changes = { state: 'waiting' as const, due: null, updated: toIsoString(now()) }
    await tx.update(deliveries).set(changes).where(condition)
    return toDelivery({ ...row, ...changes })
  })
}

function toDelivery({ _id, event, source, kind, eventName, hookUrl, state, attempts, status, ...row }: Row): Delivery {
  const { duration: durationMs, answer, error, due: nextAttempt, created, updated } = row
  const fields = { _id, event, source, kind, eventName, hookUrl, state, attempts, status, durationMs, answer, error }
  return { ...fields, nextAttempt, created, updated }
}

const RETENTION_MS = 30 * DAY_MS

/** Removes deliveries unchanged for 30 days, deliveries of removed plugins, and former secrets that have expired. */
export async function removeOld(tenant: Tenant & Lease) {
  const pluginIds = (await tenant.db.select({ _id: plugins._id }).from(plugins)).map(({ _id }) => _id)
  for (const condition of [
    lt(updated, toIsoString(now() - RETENTION_MS)),
    pluginIds.length ? notInArray(plugin, pluginIds) : isNotNull(plugin),
  ])
    await deleteInBatches(tenant, deliveries, _id, condition)
  const isExpired = lt(plugins.formerUntil, toIsoString(now()))
  if (await tenant.db.$count(plugins, isExpired))
    await writeInvalidating(tenant, 'plugins', async (tx) => {
      const rows = await tx.update(plugins).set({ formerUntil: null }).where(isExpired).returning({ _id: plugins._id })
      for (const { _id } of rows) {
        const { purpose, owner, name } = toSecretRef(_id, 'former')
        await tx.delete(sealed).where(and(eq(sealed.purpose, purpose), eq(sealed.owner, owner), eq(sealed.name, name)))
      }
    })
}
