import { and, eq, notInArray } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import type { DeletedOwner } from '../../accounts/owner-deleted'
import { HOUR_MS, now, toIsoString } from '../../core/clock'
import { badRequest, Problem } from '../../core/problem'
import { enqueue } from '../../jobs/queue'
import { JobError, type JobHandler } from '../../jobs/worker'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { requireBuyer, requireOwn, subscriptionsOfEntity } from '../billable-entity'
import { getSubscriptionProvider, undefinedIfNotFound } from '../configuration'
import { isProviderProblem, providerWait } from '../providers/errors'
import type { Cancellation } from '../shapes'
import { type Subscription, subscriptions } from '../tables'
import { carryOut } from './effect-executor'
import { providerCancelOf } from './follow-ups'
import { CANCEL_JOB } from './job-kinds'
import { isLinked, isSameLink } from './schedule'
import { toSubscription } from './serializer'
import { transition } from './state-machine'
import { findSubscription, getSubscription } from './subscriptions'
import { hasEnded, isUnpaidCheckout, shownStatus, TERMINAL_STATUSES } from './transitions'

/**
 * Cancels a subscription, at the provider first. If the provider fails, the subscription continues, is marked with
 * `cancelRequested`, and the cancellation is retried. A canceled subscription is returned as it is.
 * @throws 403, 404, 409 SUBSCRIPTION_ENDED, 502 PROVIDER_ERROR
 */
export async function cancel(ctx: Ctx, id: string, input?: Cancellation | null) {
  if (input?.atPeriodEnd)
    badRequest({ path: '/atPeriodEnd', message: 'atPeriodEnd is not supported: a subscription is cancelled at once.' })
  const row = requireOwn(ctx, await getSubscription(ctx.db, id))
  await requireBuyer(ctx, row)
  if (shownStatus(row) === 'expired' && row.status !== 'paused' && !row.conflict)
    throw new Problem(409, 'SUBSCRIPTION_ENDED', 'An expired subscription cannot be cancelled.')
  return row.status === 'canceled' ? toSubscription(row) : toSubscription(await cancelNow(ctx, row, ctx.actor.user))
}

/** Cancels a subscription at its provider and then here. @throws 502 PROVIDER_ERROR, after a retry was queued */
export async function cancelNow(tenant: Tenant, row: Subscription, by?: string): Promise<Subscription> {
  let isEnded: boolean
  try {
    isEnded = await cancelAtProvider(tenant, row)
  } catch (cause) {
    await requestCancel(tenant, row)
    if (isProviderProblem(cause)) throw cause
    const message = 'The payment provider is unreachable. The subscription will be cancelled as soon as it responds.'
    throw new Problem(502, 'PROVIDER_ERROR', message, { cause })
  }
  return tenant.write((tx) => applyCancel(tx, tenant, row, isEnded, by))
}

/** Cancels a subscription here. If it could not be canceled at the provider yet, queues another attempt. */
async function applyCancel(tx: Tx, tenant: Tenant, row: Subscription, isEnded: boolean, by?: string) {
  const { subscription } = await transition(tx, tenant, row, 'canceled', { by, endedBy: 'request' })
  // The checkout was paid, or another one was started, while it was being canceled.
  const isOther = !isSameLink(subscription, row)
  const at = isOther ? undefined : now() + CANCEL_RECHECK_DELAY_MS
  if (isOther || !isEnded) await carryOut(tx, tenant, providerCancelOf(row._id, subscription, at))
  return subscription
}

/**
 * Cancels a subscription at its provider, if it is linked to one. Returns false if it cannot be canceled yet. The checkout of
 * a pending subscription whose connection was removed cannot be reached, and can no longer activate it.
 * @throws 502 PROVIDER_ERROR, 404 when the connection of a subscription that was paid was removed
 */
export async function cancelAtProvider(tenant: Tenant, row: Subscription): Promise<boolean> {
  if (!isLinked(row)) return true
  const connected = await getSubscriptionProvider(tenant, row).catch((error) => {
    if (isUnpaidCheckout(row)) return undefinedIfNotFound(error)
    throw error
  })
  return connected ? connected.provider.cancel(connected.connection, row) : true
}

/** Marks a subscription as to be canceled, and queues a job that retries until the provider confirms it. */
const requestCancel = (tenant: Tenant, { _id }: Subscription) =>
  tenant.write(async (tx) => {
    const row = await getSubscription(tx, _id)
    if (!row.cancelRequested && !hasEnded(row)) await enqueueCancel(tx, tenant, row, now() + CANCEL_RETRY_DELAY_MS)
  })

async function enqueueCancel(tx: Tx, tenant: Pick<Tenant, 'tenant'>, { _id }: Subscription, at: number) {
  const time = toIsoString(now())
  await tx.update(subscriptions).set({ cancelRequested: time, updated: time }).where(eq(subscriptions._id, _id))
  await enqueue(tenant, tx, { kind: CANCEL_JOB, payload: { subscription: _id }, orderingKey: _id, at })
}

/** Cancels the subscriptions of a deleted user or workspace. A job cancels those that are linked to a provider. */
export async function cancelForDeletedOwner(tenant: Pick<Tenant, 'tenant'>, tx: Tx, { type, id }: DeletedOwner) {
  const unendedOfOwner = and(
    subscriptionsOfEntity({ billableEntityType: type, billableEntityId: id }),
    notInArray(subscriptions.status, TERMINAL_STATUSES),
  )
  for (const row of await tx.select().from(subscriptions).where(unendedOfOwner))
    if (isLinked(row)) await enqueueCancel(tx, tenant, row, now())
    else await transition(tx, tenant, row, 'canceled', { endedBy: 'request' })
}

const CANCEL_RETRY_DELAY_MS = 5_000
const CANCEL_RECHECK_DELAY_MS = HOUR_MS

/** Cancels a subscription at the provider after the first attempt has failed. */
export const cancelJob: JobHandler = {
  isOutgoing: true,
  retryFor: Number.POSITIVE_INFINITY,
  async run(tenant, { payload }) {
    const { subscription: id } = payload as { subscription: string }
    const row = await findSubscription(tenant.db, id)
    if (!row?.cancelRequested || hasEnded(row)) return { state: 'done' }
    const isEnded = await cancelAtProvider(tenant, row).catch(throwJobFailure)
    return { state: 'done', effect: (tx) => applyCancel(tx, tenant, row, isEnded) }
  },
}

/**
 * Has the job retried without logging the error again, because failures of providers were logged already. A provider that
 * asks to wait is not asked before.
 */
export const throwJobFailure = (error: unknown): never => {
  throw error instanceof Problem ? new JobError(error.message, { retryAfter: providerWait(error) }) : error
}
