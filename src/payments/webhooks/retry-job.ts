import { asc, inArray, isNotNull, lte } from 'drizzle-orm'
import { now } from '../../core/clock'
import type { JobHandler } from '../../jobs/worker'
import type { Tenant } from '../../tenancy/tenants'
import { type ProviderEventRow, providerEvents, subscriptions } from '../tables'
import { reapply } from './event-store'
import { nextRetryAt } from './retry-schedule'

const RETRY_BATCH_SIZE = 200

const { _id, nextAt, occurredAt } = providerEvents

/** Retries the events that are due: failed ones, and parked ones whose subscription is known by now. */
export const retryEventsJob: JobHandler = {
  async run(tenant) {
    const { db } = tenant
    const due = await db
      .select()
      .from(providerEvents)
      .where(lte(nextAt, now()))
      .orderBy(asc(occurredAt), asc(_id))
      .limit(RETRY_BATCH_SIZE)
    const resolvable = await findResolvable(tenant, due)
    for (const row of due) {
      tenant.signal.throwIfAborted()
      if (row.status !== 'parked' || resolvable.has(row._id)) await reapply(tenant, row)
    }
    const unresolved = due.filter((row) => row.status === 'parked' && !resolvable.has(row._id))
    await postpone(tenant, unresolved)
    const next = await db
      .select({ nextAt })
      .from(providerEvents)
      .where(isNotNull(nextAt))
      .orderBy(asc(nextAt))
      .limit(1)
      .get()
    return next ? { state: 'again', due: Math.max(next.nextAt!, now()) } : { state: 'done' }
  },
}

/** Returns the ids of the events whose subscription is known by now. */
async function findResolvable({ db }: Tenant, rows: ProviderEventRow[]): Promise<Set<string>> {
  const ours = rows.flatMap(({ subscriptionId }) => subscriptionId ?? [])
  const theirs = rows.flatMap(({ externalSubscriptionId }) => externalSubscriptionId ?? [])
  const { _id, providerKind, externalSubscriptionId } = subscriptions
  const matches = await Promise.all([
    ours.length ? db.select({ id: _id }).from(subscriptions).where(inArray(_id, ours)) : [],
    theirs.length
      ? db
          .select({ id: externalSubscriptionId, kind: providerKind })
          .from(subscriptions)
          .where(inArray(externalSubscriptionId, theirs))
      : [],
  ])
  const names = new Set([...matches[0].map(({ id }) => id), ...matches[1].map(({ id, kind }) => `${kind} ${id}`)])
  const isKnown = ({ subscriptionId: own, externalSubscriptionId: external, providerKind: kind }: ProviderEventRow) =>
    (own !== null && names.has(own)) || names.has(`${kind} ${external}`)
  return new Set(rows.filter(isKnown).map(({ _id }) => _id))
}

/** Schedules the next retry of parked events, in one write, for there may be many that stay unknown forever. */
async function postpone({ write }: Tenant, rows: ProviderEventRow[]) {
  if (!rows.length) return
  const times = rows.map((row) => [nextRetryAt(row) ?? null, row._id])
  await write((tx) =>
    tx.executeMany(
      `update provider_events set next_at = ?, attempts = attempts + 1 where _id = ? and status = 'parked'`,
      times,
    ),
  )
}
