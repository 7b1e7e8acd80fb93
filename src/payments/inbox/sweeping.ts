import { asc, inArray, isNotNull, lte } from 'drizzle-orm'
import { now } from '../../core/clock'
import type { Work } from '../../jobs/work'
import type { Tenant } from '../../tenancy/tenants'
import { type ProviderEventRow, providerEvents, subscriptions } from '../tables'
import { retry } from './keeping'
import { nextTry } from './parked'

const SLICE = 200

const { _id, nextAt, occurredAt } = providerEvents

/** Tries what is due: what failed, and what was parked and whose subscription has turned up. */
export const sweep: Work = {
  async run(tenant) {
    const { db } = tenant
    const due = await db
      .select()
      .from(providerEvents)
      .where(lte(nextAt, now()))
      .orderBy(asc(occurredAt), asc(_id))
      .limit(SLICE)
    const known = await knownOf(tenant, due)
    for (const row of due) {
      tenant.signal.throwIfAborted()
      if (row.status !== 'parked' || known.has(row._id)) await retry(tenant, row)
    }
    const still = due.filter((row) => row.status === 'parked' && !known.has(row._id))
    await later(tenant, still)
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

/** Those of which the subscription is known by now. */
async function knownOf({ db }: Tenant, rows: ProviderEventRow[]): Promise<Set<string>> {
  const ours = rows.flatMap(({ subscriptionId }) => subscriptionId ?? [])
  const theirs = rows.flatMap(({ externalSubscriptionId }) => externalSubscriptionId ?? [])
  const { _id, providerKind, externalSubscriptionId } = subscriptions
  const found = await Promise.all([
    ours.length ? db.select({ id: _id }).from(subscriptions).where(inArray(_id, ours)) : [],
    theirs.length
      ? db
          .select({ id: externalSubscriptionId, kind: providerKind })
          .from(subscriptions)
          .where(inArray(externalSubscriptionId, theirs))
      : [],
  ])
  const names = new Set([...found[0].map(({ id }) => id), ...found[1].map(({ id, kind }) => `${kind} ${id}`)])
  const isKnown = ({ subscriptionId: own, externalSubscriptionId: external, providerKind: kind }: ProviderEventRow) =>
    (own !== null && names.has(own)) || names.has(`${kind} ${external}`)
  return new Set(rows.filter(isKnown).map(({ _id }) => _id))
}

/** Has them tried again some time; in one write, for there may be many that nobody will ever know. */
async function later({ write }: Tenant, rows: ProviderEventRow[]) {
  if (!rows.length) return
  const times = rows.map((row) => [nextTry(row) ?? null, row._id])
  await write((tx) =>
    tx.each(
      `update provider_events set next_at = ?, attempts = attempts + 1 where _id = ? and status = 'parked'`,
      times,
    ),
  )
}
