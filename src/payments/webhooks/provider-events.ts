import { and, eq, inArray, lt } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { DAY_MS, now, toIsoString } from '../../core/clock'
import { notFound } from '../../core/problem'
import { parseOptional } from '../../core/shapes'
import { deleteInBatches } from '../../jobs/batch-delete'
import type { Lease } from '../../jobs/with-lease'
import { applyPage, type GrowingListQuery, parsePage, toGrowingListPage } from '../../storage/pagination'
import type { Tenant } from '../../tenancy/tenants'
import { filterByParameter } from '../list-filter'
import { type ProviderEventRow, providerEvents } from '../tables'
import { reapply } from './event-store'
import type { ProviderEvent, ProviderEventDetails, ProviderEventFilters } from './shapes'

const { _id, providerKind, type, status, subscriptionId, occurredAt, attempts, created, updated } = providerEvents
const sortable = { _id, providerKind, type, status, occurredAt, attempts, created, updated }

/** Returns a page of the events of providers, newest first. */
export async function list({ db }: Ctx, query: GrowingListQuery & ProviderEventFilters) {
  const page = parsePage(query, sortable)
  const subscription = parseOptional(query.subscriptionId)
  const conditions = and(
    filterByParameter(status, query, 'status'),
    filterByParameter(providerKind, query, 'providerKind'),
    filterByParameter(type, query, 'type'),
    subscription === undefined ? undefined : eq(subscriptionId, subscription),
  )
  const rows = await applyPage(page, db.select().from(providerEvents).where(and(conditions, page.after)))
  return toGrowingListPage(page, rows, () => db.$count(providerEvents, conditions), toProviderEvent)
}

/** Returns an event with its body. @throws 404 PROVIDER_EVENT_NOT_FOUND */
export async function get({ db }: Ctx, id: string): Promise<ProviderEventDetails> {
  const row = await getProviderEvent(db, id)
  return { ...toProviderEvent(row), body: JSON.parse(row.body) }
}

/** Applies an event again. It does only what has not been done yet. @throws 404 PROVIDER_EVENT_NOT_FOUND */
export const replay = async (ctx: Ctx, id: string): Promise<ProviderEvent> =>
  toProviderEvent(await reapply(ctx, await getProviderEvent(ctx.db, id)))

const getProviderEvent = async (db: Ctx['db'], id: string): Promise<ProviderEventRow> =>
  (await db.select().from(providerEvents).where(eq(_id, id)).get()) ?? notFound('provider event')

const toProviderEvent = ({ source, occurredAt, nextAt, body: _, ...row }: ProviderEventRow): ProviderEvent => ({
  ...row,
  sourceId: source,
  occurredAt: toIsoString(occurredAt),
  nextAttempt: nextAt === null ? null : toIsoString(nextAt),
})

const EVENT_RETENTION_MS = 90 * DAY_MS

/** Removes events after 90 days, but failed ones, which wait for people. No provider sends such old ones again. */
export const removeOld = (tenant: Tenant & Lease) =>
  deleteInBatches(
    tenant,
    providerEvents,
    _id,
    and(inArray(status, ['processed', 'ignored', 'parked']), lt(created, toIsoString(now() - EVENT_RETENTION_MS))),
  )
