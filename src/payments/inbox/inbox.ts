import { and, eq, inArray, lt } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../../accounts/guard'
import { DAY, iso, now } from '../../core/clock'
import type { Answer } from '../../core/etag'
import { missing } from '../../core/problem'
import { given } from '../../core/shapes'
import type { Lease } from '../../jobs/holding'
import { removeInSlices } from '../../jobs/removal'
import { answerGrowingPage, type GrowingListing, namesOf, paged, pageOf } from '../../storage/lists'
import type { Tenant } from '../../tenancy/tenants'
import { type ProviderEventRow, providerEvents } from '../tables'
import { retry } from './keeping'
import type { ProviderEvent, ProviderEventFilters, WholeProviderEvent } from './shapes'

const { _id, providerKind, type, status, subscriptionId, occurredAt, attempts, created, updated } = providerEvents
const sortable = { _id, providerKind, type, status, occurredAt, attempts, created, updated }

/** A page of what providers have sent, the newest first. */
export async function list(
  { db }: Ctx,
  query: GrowingListing & ProviderEventFilters,
  answer: Answer,
): Promise<ProviderEvent[]> {
  const page = pageOf(query, sortable)
  const anyOf = (column: SQLiteColumn, names: string[] | undefined) => names && inArray(column, names)
  const subscription = given(query.subscriptionId)
  const those = and(
    anyOf(status, namesOf(query.status, 'status')),
    anyOf(providerKind, namesOf(query.providerKind, 'providerKind')),
    anyOf(type, namesOf(query.type, 'type')),
    subscription === undefined ? undefined : eq(subscriptionId, subscription),
  )
  const rows = await paged(page, db.select().from(providerEvents).where(and(those, page.after)))
  return answerGrowingPage(answer, page, rows, () => db.$count(providerEvents, those), shown)
}

/** One of them, with what was sent. @throws 404 */
export async function get({ db }: Ctx, id: string): Promise<WholeProviderEvent> {
  const row = await found(db, id)
  return { ...shown(row), body: JSON.parse(row.body) }
}

/** Has it its effect now, as far as it has not had it yet. @throws 404 */
export const replay = async (ctx: Ctx, id: string): Promise<ProviderEvent> =>
  shown(await retry(ctx, await found(ctx.db, id)))

const found = async (db: Ctx['db'], id: string): Promise<ProviderEventRow> =>
  (!id.includes('\0') && (await db.select().from(providerEvents).where(eq(_id, id)).get())) || missing('provider event')

const shown = ({ source, occurredAt, nextAt, body: _, ...row }: ProviderEventRow): ProviderEvent => ({
  ...row,
  sourceId: source,
  occurredAt: iso(occurredAt),
  nextAttempt: nextAt === null ? null : iso(nextAt),
})

const KEPT = 90 * DAY

/** Removes what was settled three months ago: no provider sends that again. */
export const removeOld = (tenant: Tenant & Lease) =>
  removeInSlices(
    tenant,
    providerEvents,
    _id,
    and(inArray(status, ['processed', 'ignored']), lt(created, iso(now() - KEPT))),
  )
