import { and, eq } from 'drizzle-orm'
import { DAY, now } from '../../core/clock'
import { enqueue, waiting } from '../../jobs/queue'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { ProviderKind } from '../providers/provider'
import { type ProviderEventRow, providerEvents } from '../tables'

export const SWEEP = 'payments-inbox'

const SOON = 5_000
const HOUR = 3_600_000
const PATIENCE = 30 * DAY

const { _id, status, providerKind, externalSubscriptionId } = providerEvents

/** When (ms) an event is tried again: every few seconds for an hour, then ever more rarely, for a month. */
export function nextTry({ created }: Pick<ProviderEventRow, 'created'>): number | undefined {
  const age = now() - Date.parse(created)
  if (age > PATIENCE) return
  return now() + (age < HOUR ? SOON : Math.min(HOUR, age / 60))
}

/** Has what waits looked at. Of two looks one comes after this, so none is needed beyond that. */
export async function sweepSoon(tx: Tx, ctx: Pick<Tenant, 'tenant'>, at: number) {
  if ((await waiting(tx, SWEEP, 2)).length < 2) await enqueue(ctx, tx, { kind: SWEEP, lane: SWEEP, at })
}

/** A provider's subscription is known from now on: what was told of it before comes into effect. */
export async function turnedUp(tx: Tx, ctx: Pick<Tenant, 'tenant'>, kind: ProviderKind, external: string) {
  const those = and(eq(status, 'parked'), eq(externalSubscriptionId, external), eq(providerKind, kind))
  const woken = await tx.update(providerEvents).set({ nextAt: now() }).where(those).returning({ _id })
  if (woken.length) await sweepSoon(tx, ctx, now())
}
