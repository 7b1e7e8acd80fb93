import { and, eq, inArray, ne, sql } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { notFound } from '../../core/problem'
import { enqueue } from '../../jobs/queue'
import type { Tx } from '../../storage/port'
import { createRowWriter, prepareQuery } from '../../storage/prepared-statements'
import type { Tenant } from '../../tenancy/tenants'
import { type Billable, subscriptionsOfEntity } from '../billable-entity'
import { redeemOnActivation } from '../coupons/redemption'
import { upsertInvoiceForTrigger } from '../invoices/invoice-store'
import type { ProviderInvoice, ProviderKind, ProviderState } from '../providers/provider'
import { type Subscription, subscriptions } from '../tables'
import { REPRICE_JOB } from './job-kinds'
import { nextFields, nextProviderLink } from './next-state'
import { rescheduleLifecycle, scheduleBenefitEnd, scheduleLifecycle, scheduleProviderCancel } from './schedule'
import { priceOf } from './serializer'
import { emitStatusChange, emitWebhookFailure } from './subscription-events'
import { ACTIVE_STATUSES, hasActiveStatus, hasEnded, type Status, TRANSITIONS, type Trigger } from './transitions'

/** The input of a transition, besides its trigger. */
export type TransitionInput = ProviderState & {
  /** The time of the event by the provider's clock (ms). Absent if the transition does not come from a provider. */
  occurredAt?: number
  providerKind?: ProviderKind
  externalSubscriptionId?: string
  /** The connection whose secret verified the event. */
  providerSourceId?: string | null
  invoice?: ProviderInvoice
  /** The id of the user who did it, for the emitted events. */
  by?: string
  /** Whether a refusal was reported already. */
  isReported?: boolean
}

export type TransitionResult = {
  subscription: Subscription
  /** `stale`: a later event was already applied. `refused`: the transition is not possible; `why` says the reason. */
  outcome: 'applied' | 'stale' | 'refused'
  why?: string
}

/** The trigger of an `updated` event, by the status that the provider reports. */
const triggerByStatus: Record<NonNullable<ProviderState['status']>, Trigger | undefined> = {
  active: 'activated',
  trialing: 'trial',
  past_due: 'payment failed',
  canceled: 'canceled',
  expired: 'expired',
  pending: undefined,
}

/** Triggers after which the customer pays, or gets access. */
const PAYING_TRIGGERS: (Trigger | undefined)[] = ['activated', 'trial', 'paid']

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
  input: TransitionInput = {},
): Promise<TransitionResult> {
  const [row] = await selectById(tx, { _id })
  const before = row ?? notFound('subscription')
  if (input.invoice) await upsertInvoiceForTrigger(tx, ctx, before, meaning, input.invoice, input.providerKind)
  // The provider is asked once more, because an ended subscription got an invoice.
  if (input.invoice && hasEnded(before)) await scheduleLifecycle(tx, ctx, before)
  if (meaning === 'voided') return { subscription: before, outcome: 'applied' }
  const { occurredAt } = input
  if (occurredAt !== undefined && before.lastEventAt !== null && occurredAt < before.lastEventAt)
    return { subscription: before, outcome: 'stale', why: 'A later event was already applied.' }
  const trigger = meaning === 'updated' ? input.status && triggerByStatus[input.status] : meaning
  // An overdue subscription was active before, even if no event said so, so these are two transitions.
  if (before.status === 'pending' && trigger === 'payment failed' && input.status === 'past_due') {
    const activation = await transition(tx, ctx, before, 'activated', input)
    return activation.subscription.status === 'pending' ? activation : transition(tx, ctx, before, meaning, input)
  }
  const to = nextStatus(before, trigger, input)
  const obstacle = await findObstacle(tx, before, trigger, to, input)
  if (!to || obstacle) return rejectTransition(tx, ctx, before, trigger, input, obstacle)
  const activated = to === 'active' && before.status !== 'active'
  const changed = { ...before, ...nextFields(before, to, trigger, input), status: to, updated: toIsoString(now()) }
  const subscription = activated ? await redeemOnActivation(tx, ctx, changed) : changed
  await subscriptionRows.update(tx, subscription)
  await emitStatusChange(ctx, tx, before, subscription, input.by)
  await rescheduleLifecycle(tx, ctx, before, subscription)
  if (hasActiveStatus(subscription) && !hasActiveStatus(before)) await cancelPastDue(tx, ctx, subscription)
  if (before.externalSubscriptionId && before.externalSubscriptionId !== subscription.externalSubscriptionId)
    await scheduleProviderCancel(tx, ctx, _id, { ...before, externalCheckoutId: null })
  if (subscription.couponBenefitEndsAt !== before.couponBenefitEndsAt) await scheduleBenefitEnd(tx, ctx, subscription)
  if (isMispriced(before, subscription))
    await enqueue(ctx, tx, { kind: REPRICE_JOB, payload: { subscription: _id }, orderingKey: _id })
  return { subscription, outcome: 'applied' }
}

/** Cancels the overdue subscriptions of an entity that has a new one: the provider would still try to collect them. */
async function cancelPastDue(tx: Tx, ctx: Pick<Tenant, 'tenant'>, row: Subscription) {
  const { _id, status } = subscriptions
  const late = and(subscriptionsOfEntity(row), eq(status, 'past_due'), ne(_id, row._id))
  for (const pastDue of await tx.select().from(subscriptions).where(late)) {
    const { subscription } = await transition(tx, ctx, pastDue, 'canceled')
    await scheduleProviderCancel(tx, ctx, pastDue._id, subscription)
  }
}

/**
 * Returns whether the provider may charge another amount than the current price: that of an earlier checkout, of an earlier
 * price, or of a coupon that was lost. If our last checkout did not create the subscription, or there was none, the customer
 * may have chosen its price.
 */
function isMispriced(before: Subscription, after: Subscription) {
  const { externalSubscriptionId: previousExternalId, status } = before
  const previousPrice = status === 'pending' ? before.checkoutAmount : priceOf(before)
  // A subscription that was active without a provider was free.
  const isOther =
    (previousExternalId !== null || status !== 'pending') && previousExternalId !== after.externalSubscriptionId
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
function nextStatus(
  { status }: Subscription,
  trigger: Trigger | undefined,
  { invoice }: TransitionInput,
): Status | undefined {
  // An update without a status keeps it, as does a paid invoice of zero, such as that of a trial.
  const stays = !trigger || (trigger === 'paid' && invoice?.amount === 0 && ['pending', 'trialing'].includes(status))
  if (stays) return hasEnded({ status }) ? undefined : status
  return TRANSITIONS[status][trigger]
}

type Obstacle = { why: string; existingSubscriptionId?: string }

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
    // Of several checkouts of a pending subscription, the paid one counts.
    const isFree = before.providerKind === null && before.status !== 'pending' && priceOf(before) === 0
    const isDecided =
      isFree || (before.externalSubscriptionId && (before.status !== 'pending' || !PAYING_TRIGGERS.includes(trigger)))
    if (isDecided || (providerKind && (await findByExternalId(tx, providerKind, external)))) return foreign
  }
  if (!to || !ACTIVE_STATUSES.includes(to) || hasActiveStatus(before)) return
  // No checkout of ours can have led to a payment.
  if (before.basePrice === null) return { why: 'An administrator has not set the price of this subscription.' }
  const other = await findActiveSubscription(tx, before)
  const why = 'The entity already has an active subscription.'
  return other && { why, existingSubscriptionId: other._id }
}

/** Returns a subscription by its id at a provider. */
export const findByExternalId = (
  db: Pick<Tx, 'select'>,
  kind: ProviderKind,
  external: string,
): Promise<Subscription | undefined> =>
  db
    .select()
    .from(subscriptions)
    .where(and(eq(subscriptions.providerKind, kind), eq(subscriptions.externalSubscriptionId, external)))
    .get()

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

async function rejectTransition(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  before: Subscription,
  trigger: Trigger | undefined,
  input: TransitionInput,
  obstacle?: Obstacle,
): Promise<TransitionResult> {
  const { occurredAt, externalSubscriptionId, invoice, isReported } = input
  const why = obstacle?.why ?? `Transition '${trigger ?? 'changed'}' is not allowed from status ${before.status}.`
  const outcome = { outcome: 'refused', why } as const
  // The customer pays for something that they do not get, which admins have to know.
  if (!PAYING_TRIGGERS.includes(trigger) || occurredAt === undefined) return { subscription: before, ...outcome }
  const details = { trigger, externalSubscriptionId, invoice: invoice?.externalInvoiceId }
  if (!isReported) await emitWebhookFailure(ctx, tx, before, { ...details, ...obstacle, why })
  if (!obstacle?.existingSubscriptionId) await cancelSurplusAtProvider(tx, ctx, before, input)
  if (!obstacle?.existingSubscriptionId || before.externalSubscriptionId) return { subscription: before, ...outcome }
  // Stores the link, with which the subscription can be canceled at the provider.
  const link = nextProviderLink(before, input)
  await tx.update(subscriptions).set(link).where(eq(subscriptions._id, before._id))
  return { subscription: { ...before, ...link }, ...outcome }
}

/** Cancels a subscription at the provider that is paid in vain, unless a subscription here that has not ended uses it. */
async function cancelSurplusAtProvider(tx: Tx, ctx: Pick<Tenant, 'tenant'>, row: Subscription, input: TransitionInput) {
  const external = input.externalSubscriptionId ?? row.externalSubscriptionId
  const kind = input.providerKind ?? row.providerKind
  if (!external || !kind) return
  const owner = await findByExternalId(tx, kind, external)
  if (owner && !hasEnded(owner)) return
  const providerSourceId = input.providerSourceId ?? row.providerSourceId
  const attachment = { providerKind: kind, externalSubscriptionId: external, externalCheckoutId: null }
  await scheduleProviderCancel(tx, ctx, row._id, { ...attachment, providerSourceId })
}
