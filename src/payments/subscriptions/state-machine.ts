import { and, eq, inArray, isNotNull, ne, sql } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { notFound } from '../../core/problem'
import { enqueue } from '../../jobs/queue'
import type { Tx } from '../../storage/port'
import { createRowWriter, prepareQuery } from '../../storage/prepared-statements'
import type { Tenant } from '../../tenancy/tenants'
import { type Billable, subscriptionsOfEntity } from '../billable-entity'
import { fittingPeriod } from '../billing-period'
import { redeemOnActivation } from '../coupons/redemption'
import { upsertInvoiceForTrigger, voidPlaceholderInvoices } from '../invoices/invoice-store'
import { providerOf } from '../providers'
import type { ProviderInvoice, ProviderState } from '../providers/provider'
import { type Subscription, subscriptions } from '../tables'
import { REPRICE_JOB } from './job-kinds'
import { nextFields } from './next-state'
import { findByExternalId, type Obstacle, PAYING_TRIGGERS, rejectTransition } from './rejection'
import {
  isLinked,
  rescheduleLifecycle,
  scheduleBenefitEnd,
  scheduleCheck,
  scheduleLifecycle,
  scheduleProviderCancel,
} from './schedule'
import { priceOf } from './serializer'
import { emitStatusChange } from './subscription-events'
import type { TransitionInput, TransitionResult } from './transition-input'
import {
  ACTIVE_STATUSES,
  hasActiveStatus,
  hasEnded,
  isUnpaidCheckout,
  type Status,
  TRANSITIONS,
  type Trigger,
} from './transitions'

/** The trigger of an `updated` event, by the status that the provider reports. */
const triggerByStatus: Record<NonNullable<ProviderState['status']>, Trigger | undefined> = {
  active: 'activated',
  trialing: 'trial',
  past_due: 'payment failed',
  paused: 'paused',
  canceled: 'canceled',
  expired: 'expired',
  pending: undefined,
}

/**
 * Applies a trigger to a subscription, with all that follows from it, in this transaction. Nothing else changes a status.
 * The invoice is stored even if the transition is refused.
 * @throws 404 SUBSCRIPTION_NOT_FOUND
 */
export async function transition(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  { _id }: Pick<Subscription, '_id'>,
  meaning: Trigger | 'updated' | 'voided',
  reported: TransitionInput = {},
): Promise<TransitionResult> {
  const [row] = await selectById(tx, { _id })
  const before = row ?? notFound('subscription')
  const input = { ...reported, ...fittingPeriod(reported.periods, before.billingCycle) }
  const { occurredAt } = input
  const isStale = occurredAt !== undefined && before.lastEventAt !== null && occurredAt < before.lastEventAt
  if (input.invoice && (meaning !== 'payment failed' || !isStale || isStillOwed(before, input.invoice)))
    await storeInvoice(tx, ctx, before, meaning, input)
  if (meaning === 'voided' || input.invoice?.isExtra) return { subscription: before, outcome: 'applied' }
  if (isStale) return { subscription: before, outcome: 'stale', why: 'A later event was already applied.' }
  const trigger = meaning === 'updated' ? input.status && triggerByStatus[input.status] : meaning
  // An overdue subscription was active before, even if no event said so, so these are two transitions.
  if (isUnpaidCheckout(before) && trigger === 'payment failed' && input.status === 'past_due') {
    const activation = await transition(tx, ctx, before, 'activated', input)
    return activation.outcome === 'applied' ? transition(tx, ctx, before, meaning, input) : activation
  }
  const to = nextStatus(before, trigger, input)
  const obstacle = await findObstacle(tx, before, trigger, to, input)
  if (!to || obstacle) return rejectTransition(tx, ctx, before, trigger, input, obstacle)
  const changed = { ...before, ...nextFields(before, to, trigger, input), status: to, updated: toIsoString(now()) }
  const isActivated = to === 'active' && before.status !== 'active'
  const subscription = isActivated ? await redeemOnActivation(tx, ctx, changed) : changed
  await subscriptionRows.update(tx, subscription)
  await emitStatusChange(ctx, tx, before, subscription, input.by)
  await followUp(tx, ctx, before, subscription)
  return { subscription, outcome: 'applied' }
}

/** Does what follows from a change of a subscription: for other subscriptions of the entity, its jobs and its invoices. */
async function followUp(tx: Tx, ctx: Pick<Tenant, 'tenant'>, before: Subscription, after: Subscription) {
  const { _id } = after
  await rescheduleLifecycle(tx, ctx, before, after)
  if (hasActiveStatus(after) && !hasActiveStatus(before)) await endPastDue(tx, ctx, after)
  if (hasActiveStatus(before) && !hasActiveStatus(after)) await checkConflicting(tx, ctx, after)
  if (hasEnded(after) && after.providerKind) await voidPlaceholderInvoices(tx, ctx, after, after.providerKind)
  if (before.externalSubscriptionId && before.externalSubscriptionId !== after.externalSubscriptionId)
    await scheduleProviderCancel(tx, ctx, _id, { ...before, externalCheckoutId: null })
  if (after.couponBenefitEndsAt !== before.couponBenefitEndsAt) await scheduleBenefitEnd(tx, ctx, after)
  if (isMispriced(before, after))
    await enqueue(ctx, tx, { kind: REPRICE_JOB, payload: { subscription: _id }, orderingKey: _id })
}

async function storeInvoice(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  before: Subscription,
  meaning: Trigger | 'updated' | 'voided',
  { invoice, providerKind }: TransitionInput,
) {
  await upsertInvoiceForTrigger(tx, ctx, before, meaning, invoice!, providerKind)
  // The provider is asked once more, because an ended subscription got an invoice.
  if (hasEnded(before)) await scheduleLifecycle(tx, ctx, before)
}

/**
 * Returns whether the invoice of an outdated failure may still be owed. A placeholder may not: no later event would close it.
 */
function isStillOwed(row: Subscription, { externalInvoiceId }: ProviderInvoice) {
  const isPlaceholder = row.providerKind && providerOf(row.providerKind).isPlaceholderInvoice?.(externalInvoiceId, row)
  return !isPlaceholder && (row.status === 'past_due' || row.status === 'lapsed')
}

/**
 * Ends the overdue subscriptions of an entity that has a new one: the provider would still try to collect them. It is told
 * unless they were paid meanwhile.
 */
async function endPastDue(tx: Tx, ctx: Pick<Tenant, 'tenant'>, row: Subscription) {
  const { _id, status } = subscriptions
  const late = and(subscriptionsOfEntity(row), eq(status, 'past_due'), ne(_id, row._id))
  for (const pastDue of await tx.select().from(subscriptions).where(late)) {
    const { subscription } = await transition(tx, ctx, pastDue, 'replaced')
    if (subscription.status === 'lapsed') await scheduleLifecycle(tx, ctx, subscription)
  }
}

/** Asks the provider about the subscriptions of an entity that were kept from coming into force by one that ended. */
async function checkConflicting(tx: Tx, ctx: Pick<Tenant, 'tenant'>, row: Subscription) {
  const waiting = and(subscriptionsOfEntity(row), isNotNull(subscriptions.conflict), ne(subscriptions._id, row._id))
  for (const conflicting of await tx.select().from(subscriptions).where(waiting))
    await scheduleCheck(tx, ctx, conflicting)
}

/**
 * Returns whether the provider may charge another amount than the current price: that of an earlier checkout, of an earlier
 * price, or of a coupon that was lost. If our last checkout did not create the subscription, or there was none, the customer
 * may have chosen its price.
 */
function isMispriced(before: Subscription, after: Subscription) {
  const { externalSubscriptionId: previousExternalId } = before
  const isUnpaid = isUnpaidCheckout(before)
  const previousPrice = isUnpaid ? before.checkoutAmount : priceOf(before)
  // A subscription that was active without a provider was free.
  const isOther = (previousExternalId !== null || !isUnpaid) && previousExternalId !== after.externalSubscriptionId
  const isBilledNow = hasActiveStatus(after) && after.externalSubscriptionId !== null
  return isBilledNow && (isOther || previousPrice !== priceOf(after))
}

const selectById = prepareQuery((tx) =>
  tx
    .select()
    .from(subscriptions)
    .where(eq(subscriptions._id, sql.placeholder('_id'))),
)
const subscriptionRows = createRowWriter(subscriptions)

/** Returns the next status, or undefined if `TRANSITIONS` does not allow the trigger. */
function nextStatus(before: Subscription, trigger: Trigger | undefined, input: TransitionInput): Status | undefined {
  const { status } = before
  if (stays(before, trigger, input)) return hasEnded({ status }) ? undefined : status
  const to = TRANSITIONS[status][trigger!]
  // Nobody has to confirm the end of what no provider bills.
  return to === 'lapsed' && !isLinked(before) ? 'canceled' : to
}

/** Returns whether a trigger keeps the status, whatever `TRANSITIONS` says. */
function stays(row: Subscription, trigger: Trigger | undefined, { invoice, status, ...input }: TransitionInput) {
  if (!trigger) return true
  const isInForce = row.status === 'active' || row.status === 'past_due'
  // A paid invoice of zero, such as that of a trial, says nothing about what follows.
  if (trigger === 'paid' && invoice?.amount === 0) return !isInForce
  if (row.status === 'paused' && trigger === 'payment failed') return status !== 'past_due'
  if (row.status !== 'lapsed' || trigger !== 'activated' || !(input.cancelAtPeriodEnd ?? row.cancelAtPeriodEnd))
    return false
  // The provider has not ended yet what was not renewed.
  return (input.periodEnd ?? Date.parse(row.currentPeriodEnd ?? '')) <= now()
}

/** Returns why a transition is not possible although `TRANSITIONS` allows it, or undefined. */
async function findObstacle(
  tx: Tx,
  before: Subscription,
  trigger: Trigger | undefined,
  to: Status | undefined,
  { externalSubscriptionId: external, providerKind = before.providerKind ?? undefined }: TransitionInput,
): Promise<Obstacle | undefined> {
  const foreign = { why: `The event is about another subscription at the provider: ${external}.` }
  if (external && external !== before.externalSubscriptionId) {
    // Of several checkouts, the one that was paid counts, also if another one was overdue or paused.
    const isFree = before.providerKind === null && before.status !== 'pending' && priceOf(before) === 0
    const isDecided =
      isFree || (before.externalSubscriptionId && (hasActiveStatus(before) || !PAYING_TRIGGERS.includes(trigger)))
    if (isDecided || (providerKind && (await findByExternalId(tx, providerKind, external)))) return foreign
  }
  // An overdue subscription is in force until its grace period ends.
  const isInForce = hasActiveStatus(before) || before.status === 'past_due'
  if (!to || !(ACTIVE_STATUSES.includes(to) ? !hasActiveStatus(before) : to === 'past_due' && !isInForce)) return
  // No checkout of ours can have led to a payment.
  if (before.basePrice === null) return { why: 'An administrator has not set the price of this subscription.' }
  const other = await findActiveSubscription(tx, before)
  const why = 'The entity already has an active subscription.'
  return other && { why, existingSubscriptionId: other._id }
}

/** Returns the active or trialing subscription of an entity, other than the given one. */
export const findActiveSubscription = (
  tx: Pick<Tx, 'select'>,
  { _id = '', ...entity }: Billable & { _id?: string },
): Promise<Subscription | undefined> =>
  tx
    .select()
    .from(subscriptions)
    .where(
      and(subscriptionsOfEntity(entity), inArray(subscriptions.status, ACTIVE_STATUSES), ne(subscriptions._id, _id)),
    )
    .get()
