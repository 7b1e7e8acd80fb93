import { and, eq } from 'drizzle-orm'
import { now } from '../../core/clock'
import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { type Source, sourceOf } from '../configuration'
import { forgive } from '../inbox/effects'
import { turnedUp } from '../inbox/parked'
import { settleInvoice } from '../invoices/keeping'
import type { ProviderKind, ProviderSubscription } from '../providers/provider'
import { callOff } from '../subscriptions/arranging'
import { moved } from '../subscriptions/machine'
import { ENDED } from '../subscriptions/moves'
import { found } from '../subscriptions/subscriptions'
import { invoices, type Subscription, subscriptions } from '../tables'
import { driftOf, missedOf, tellDrift } from './drift'

/**
 * Makes up for what was lost on the way: has a subscription be as its provider has it. What can't be mended is told once.
 * Where something happens meanwhile, that counts, and the next look shows what is left. @throws 404, 502
 */
export async function reconcile(tenant: Tenant, row: Subscription) {
  const { provider, opened, kind } = await sourceOf(tenant, row)
  const { externalSubscriptionId, externalCheckoutId } = row
  const external =
    externalSubscriptionId ??
    (externalCheckoutId === null ? undefined : await provider.subscriptionOf?.(opened, externalCheckoutId))
  if (!external) return
  const asked = now()
  const theirs = await provider.fetchSubscription(opened, external)
  const drift = theirs ? driftOf(row, theirs, await invoicesOf(tenant.db, kind, row)) : { missing: external }
  const told = drift && JSON.stringify(drift)
  if (!drift && row.drift === null) return
  await tenant.write(async (tx) => {
    const current = await found(tx, row._id)
    if (current.updated !== row.updated || current.status !== row.status) return
    const known = told === current.drift
    const mended = !!theirs && !!drift && (await mend(tx, tenant, current, kind, theirs, { asked, known }))
    if (drift && (mended || !known)) await tellDrift(tx, tenant, current, kind, drift, mended)
    const left = mended || !told ? null : told
    if (left !== current.drift)
      await tx.update(subscriptions).set({ drift: left }).where(eq(subscriptions._id, row._id))
  })
}

/** Keeps what was paid for something that has ended, or that nobody waits for. @throws 502 */
export async function keepInvoices(
  tenant: Tenant,
  { provider, opened, kind }: Source,
  row: Subscription,
  external: string,
) {
  const theirs = await provider.fetchSubscription(opened, external)
  if (!theirs || !missedOf(theirs, await invoicesOf(tenant.db, kind, row)).length) return
  await tenant.write(async (tx) => {
    const missed = await settleMissed(tx, tenant, row, kind, theirs)
    await tellDrift(tx, tenant, row, kind, { invoices: missed }, true)
  })
}

async function settleMissed(
  tx: Tx,
  tenant: Tenant,
  row: Subscription,
  kind: ProviderKind,
  theirs: ProviderSubscription,
): Promise<string[]> {
  const missed = missedOf(theirs, await invoicesOf(tx, kind, row))
  for (const invoice of missed) {
    await settleInvoice(tx, tenant, row, kind, invoice)
    if (kind === 'paypal' && invoice.status === 'paid') await forgive(tx, tenant, row)
  }
  return missed.map(({ externalInvoiceId }) => externalInvoiceId)
}

const invoicesOf = (db: Pick<Db, 'select'>, kind: ProviderKind, { _id }: Subscription) =>
  db
    .select()
    .from(invoices)
    .where(and(eq(invoices.subscriptionId, _id), eq(invoices.providerKind, kind)))

type Asked = { asked: number; known: boolean }

/** Whether all is as the provider has it afterwards. */
async function mend(
  tx: Tx,
  tenant: Tenant,
  row: Subscription,
  kind: ProviderKind,
  theirs: ProviderSubscription,
  { asked, known }: Asked,
): Promise<boolean> {
  const { invoices: _, ...standing } = theirs
  await settleMissed(tx, tenant, row, kind, theirs)
  const { externalSubscriptionId } = theirs
  if (ENDED.includes(row.status)) {
    if (ENDED.includes(theirs.status) || theirs.status === 'pending') return true
    // It ended here: it ends there, too.
    if (!known) await callOff(tx, tenant, row._id, { ...row, externalSubscriptionId })
    return false
  }
  if (theirs.status === 'pending') return true
  // Providers say the second in which something happens: what follows within this one still counts.
  const occurredAt = Math.max(asked - (asked % 1000), row.lastEventAt ?? 0)
  const told = { ...standing, occurredAt, providerKind: kind, externalSubscriptionId, known }
  const { outcome, subscription } = await moved(tx, tenant, row, 'updated', told)
  if (row.externalSubscriptionId !== subscription.externalSubscriptionId)
    await turnedUp(tx, tenant, kind, externalSubscriptionId)
  return outcome === 'applied'
}
