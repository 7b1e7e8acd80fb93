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
import {
  ACTIVE_STATUSES,
  hasActiveStatus,
  type Status,
  TERMINAL_STATUSES,
  TRANSITIONS,
  type Trigger,
} from './transitions'

/** What comes with a trigger. */
export type TransitionInput = ProviderState & {
  /** When it happened, by the provider's clock (ms). Without it, it is we who say it, now. */
  occurredAt?: number
  providerKind?: ProviderKind
  externalSubscriptionId?: string
  /** The connection whose secret has signed it. */
  providerSourceId?: string | null
  invoice?: ProviderInvoice
  /** Who did it, for the record. */
  by?: string
  /** Whether people know already that it can't be done. */
  isReported?: boolean
}

export type TransitionResult = {
  subscription: Subscription
  /** `stale`: something later was applied already. `refused`: it can't be, for the reason that `why` tells. */
  outcome: 'applied' | 'stale' | 'refused'
  why?: string
}

/** What an `updated` comes to: the status that the provider tells. */
const triggerByStatus: Record<NonNullable<ProviderState['status']>, Trigger | undefined> = {
  active: 'activated',
  trialing: 'trial',
  past_due: 'payment failed',
  canceled: 'canceled',
  expired: 'expired',
  pending: undefined,
}

/** Triggers after which somebody pays, or may use what they don't yet. */
const PAYING_TRIGGERS: (Trigger | undefined)[] = ['activated', 'trial', 'paid']

/**
 * Moves a subscription, with all that follows from it, in this transaction: nothing else changes a status. Invoices are
 * kept whatever else comes of it. @throws 404 SUBSCRIPTION_NOT_FOUND
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
  // What became of it the provider is asked once more.
  if (input.invoice && TERMINAL_STATUSES.includes(before.status)) await scheduleLifecycle(tx, ctx, before)
  if (meaning === 'voided') return { subscription: before, outcome: 'applied' }
  const { occurredAt } = input
  if (occurredAt !== undefined && before.lastEventAt !== null && occurredAt < before.lastEventAt)
    return { subscription: before, outcome: 'stale', why: 'A later event was already applied.' }
  const trigger = meaning === 'updated' ? input.status && triggerByStatus[input.status] : meaning
  // Who is late to pay has begun before, though nobody told us: these are two moves.
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

/** Who began anew has given up what they were late to pay: its provider would try to have that paid, too. */
async function cancelPastDue(tx: Tx, ctx: Pick<Tenant, 'tenant'>, row: Subscription) {
  const { _id, status } = subscriptions
  const late = and(subscriptionsOfEntity(row), eq(status, 'past_due'), ne(_id, row._id))
  for (const pastDue of await tx.select().from(subscriptions).where(late)) {
    const { subscription } = await transition(tx, ctx, pastDue, 'canceled')
    await scheduleProviderCancel(tx, ctx, pastDue._id, subscription)
  }
}

/**
 * Whether the provider may take another amount: that of an earlier checkout, or one before the price was changed, or of a
 * coupon that was lost. Who pays for something that our last checkout has not made may have said the price themselves.
 */
function isMispriced(before: Subscription, after: Subscription) {
  const { externalSubscriptionId: previousExternalId, status } = before
  const previousPrice = status === 'pending' ? before.checkoutAmount : priceOf(before)
  // What was in force without a provider was for nothing once.
  const isOther =
    (previousExternalId !== null || status !== 'pending') && previousExternalId !== after.externalSubscriptionId
  const isBilledNow = hasActiveStatus(after) && after.externalSubscriptionId !== null
  return isBilledNow && (isOther || (previousPrice !== null && previousPrice !== priceOf(after)))
}

const selectById = prepareQuery((tx) =>
  tx
    .select()
    .from(subscriptions)
    .where(eq(subscriptions._id, sql.placeholder('_id'))),
)
const subscriptionRows = createRowWriter(subscriptions)

/** Where it goes to; undefined for what the table does not know. */
function nextStatus(
  { status }: Subscription,
  trigger: Trigger | undefined,
  { invoice }: TransitionInput,
): Status | undefined {
  // An update that says nothing of the status leaves it, as does an invoice of nothing, such as that of a trial.
  const stays = !trigger || (trigger === 'paid' && invoice?.amount === 0 && ['pending', 'trialing'].includes(status))
  if (stays) return TERMINAL_STATUSES.includes(status) ? undefined : status
  return TRANSITIONS[status][trigger]
}

type Obstacle = { why: string; existingSubscriptionId?: string }

/** Why it can't be moved, though the table would. */
async function findObstacle(
  tx: Tx,
  before: Subscription,
  trigger: Trigger | undefined,
  to: Status | undefined,
  { externalSubscriptionId: external, providerKind = before.providerKind ?? undefined }: TransitionInput,
): Promise<Obstacle | undefined> {
  const foreign = { why: `The event is about another subscription at the provider: ${external}.` }
  if (external && external !== before.externalSubscriptionId) {
    // Of several checkouts of a pending one, the one that is paid counts.
    const isFree = before.providerKind === null && before.status !== 'pending' && priceOf(before) === 0
    const isDecided =
      isFree || (before.externalSubscriptionId && (before.status !== 'pending' || !PAYING_TRIGGERS.includes(trigger)))
    if (isDecided || (providerKind && (await findByExternalId(tx, providerKind, external)))) return foreign
  }
  if (!to || !ACTIVE_STATUSES.includes(to) || hasActiveStatus(before)) return
  const other = await findActiveSubscription(tx, before)
  const why = 'The entity already has an active subscription.'
  return other && { why, existingSubscriptionId: other._id }
}

/** A subscription by the name that a provider has for it. */
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

/** The subscription of an entity that is active or trialing, but for this one. */
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
  // Somebody pays for what they don't get: people have to look at it.
  if (!PAYING_TRIGGERS.includes(trigger) || occurredAt === undefined) return { subscription: before, ...outcome }
  const details = { trigger, externalSubscriptionId, invoice: invoice?.externalInvoiceId }
  if (!isReported) await emitWebhookFailure(ctx, tx, before, { ...details, ...obstacle, why })
  if (!obstacle?.existingSubscriptionId) await cancelSurplusAtProvider(tx, ctx, before, input)
  if (!obstacle?.existingSubscriptionId || before.externalSubscriptionId) return { subscription: before, ...outcome }
  // By this it can be canceled there.
  const link = nextProviderLink(before, input)
  await tx.update(subscriptions).set(link).where(eq(subscriptions._id, before._id))
  return { subscription: { ...before, ...link }, ...outcome }
}

/** What is paid for nothing, or twice, ends at the provider. */
async function cancelSurplusAtProvider(tx: Tx, ctx: Pick<Tenant, 'tenant'>, row: Subscription, input: TransitionInput) {
  const external = input.externalSubscriptionId ?? row.externalSubscriptionId
  const kind = input.providerKind ?? row.providerKind
  if (!external || !kind) return
  const owner = await findByExternalId(tx, kind, external)
  if (owner && !TERMINAL_STATUSES.includes(owner.status)) return
  const providerSourceId = input.providerSourceId ?? row.providerSourceId
  const attachment = { providerKind: kind, externalSubscriptionId: external, externalCheckoutId: null }
  await scheduleProviderCancel(tx, ctx, row._id, { ...attachment, providerSourceId })
}
