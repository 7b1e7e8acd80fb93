import { and, eq, notInArray } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import type { Leaving } from '../../accounts/leaving'
import { iso, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import { enqueue } from '../../jobs/queue'
import { Failure, type Work } from '../../jobs/work'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { refuseForeign, requireBuyer } from '../billable'
import { sourceOf } from '../configuration'
import { type Subscription, subscriptions } from '../tables'
import { callOff, isAttached } from './arranging'
import { CANCEL } from './kinds'
import { moved } from './machine'
import { ENDED } from './moves'
import { shown } from './shown'
import { found } from './subscriptions'

/**
 * Ends a subscription: the provider is told first. Where it can't be, the subscription goes on, is marked, and the
 * provider is told as soon as possible. What is canceled stays so. @throws 403, 404, 409 SUBSCRIPTION_ENDED, 502 PROVIDER_ERROR
 */
export async function cancel(ctx: Ctx, id: string) {
  const row = refuseForeign(ctx, await found(ctx.db, id))
  await requireBuyer(ctx, row)
  if (row.status === 'expired')
    throw new Problem(409, 'SUBSCRIPTION_ENDED', 'This subscription is expired, so there is nothing to cancel.')
  return row.status === 'canceled' ? shown(row) : shown(await end(ctx, row, ctx.actor.user))
}

/** @throws 502 PROVIDER_ERROR */
export async function end(tenant: Tenant, row: Subscription, by?: string): Promise<Subscription> {
  let over: boolean
  try {
    over = await endAtProvider(tenant, row)
  } catch (cause) {
    await request(tenant, row)
    if (cause instanceof Problem && cause.code === 'PROVIDER_ERROR') throw cause
    const message = 'The payment provider could not be told. The subscription will end as soon as it was.'
    throw new Problem(502, 'PROVIDER_ERROR', message, { cause })
  }
  return tenant.write((tx) => ended(tx, tenant, row, over, by))
}

/** What could not end at the provider yet is looked at again. */
async function ended(tx: Tx, tenant: Tenant, row: Subscription, over: boolean, by?: string) {
  const { subscription } = await moved(tx, tenant, row, 'canceled', { by })
  if (!over) await callOff(tx, tenant, row._id, subscription, now() + LATER)
  // It was paid while its checkout was called off.
  else if (subscription.externalSubscriptionId !== row.externalSubscriptionId)
    await callOff(tx, tenant, row._id, subscription)
  return subscription
}

/** False where it can't end yet. What the provider knows nothing of needs no telling. @throws 502 PROVIDER_ERROR */
export async function endAtProvider(tenant: Tenant, row: Subscription): Promise<boolean> {
  if (!isAttached(row)) return true
  const { provider, opened } = await sourceOf(tenant, row)
  return provider.cancel(opened, row)
}

/** Marks that it should end, and has it tried again until the provider agrees. */
const request = (tenant: Tenant, { _id }: Subscription) =>
  tenant.write(async (tx) => {
    const row = await found(tx, _id)
    if (!row.cancelRequested && !ENDED.includes(row.status)) await requestIn(tx, tenant, row, now() + SOON)
  })

async function requestIn(tx: Tx, tenant: Pick<Tenant, 'tenant'>, { _id }: Subscription, at: number) {
  const time = iso(now())
  await tx.update(subscriptions).set({ cancelRequested: time, updated: time }).where(eq(subscriptions._id, _id))
  await enqueue(tenant, tx, { kind: CANCEL, payload: { subscription: _id }, lane: _id, at })
}

/** Nobody pays for a user or a workspace that is no more: what a provider knows of is ended there as soon as possible. */
export async function endAllOf(tenant: Pick<Tenant, 'tenant'>, tx: Tx, { type, id }: Leaving) {
  const { billableEntityType, billableEntityId, status } = subscriptions
  const theirs = and(eq(billableEntityType, type), eq(billableEntityId, id), notInArray(status, ENDED))
  for (const row of await tx.select().from(subscriptions).where(theirs))
    if (isAttached(row)) await requestIn(tx, tenant, row, now())
    else await moved(tx, tenant, row, 'canceled')
}

const SOON = 5_000 // ms
const LATER = 3_600_000 // ms

/** Tells the provider what it could not be told when it was asked. */
export const canceling: Work = {
  patience: Number.POSITIVE_INFINITY,
  async run(tenant, { payload }) {
    const { subscription: id } = payload as { subscription: string }
    const row = await tenant.db.select().from(subscriptions).where(eq(subscriptions._id, id)).get()
    if (!row?.cancelRequested || ENDED.includes(row.status)) return { state: 'done' }
    const over = await endAtProvider(tenant, row).catch(failing)
    return { state: 'done', effect: (tx) => ended(tx, tenant, row, over) }
  },
}

/** What went wrong with a provider was reported already: the job is tried again. */
export const failing = (error: unknown): never => {
  throw error instanceof Problem ? new Failure(error.message) : error
}
