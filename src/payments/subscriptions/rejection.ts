import { and, eq } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import type { Tx } from '../../storage/port'
import { createRowWriter } from '../../storage/prepared-statements'
import type { Tenant } from '../../tenancy/tenants'
import { offerRefund } from '../invoices/refund-offer'
import type { ProviderKind } from '../providers/provider'
import { type Subscription, subscriptions } from '../tables'
import { nextProviderLink } from './next-state'
import { rescheduleLifecycle, scheduleProviderCancel } from './schedule'
import { emitSubscriptionEvent, emitWebhookFailure } from './subscription-events'
import type { TransitionInput, TransitionResult } from './transition-input'
import { hasEnded, shownStatus, type Trigger } from './transitions'

/** Triggers after which the customer pays, or gets access. */
export const PAYING_TRIGGERS: (Trigger | undefined)[] = ['activated', 'trial', 'paid']

/** Why a transition is not possible although `TRANSITIONS` allows it, and the subscription in force that is in its way. */
export type Obstacle = { why: string; existingSubscriptionId?: string }

const subscriptionRows = createRowWriter(subscriptions)

/** Refuses a transition. If the customer pays for something that they do not get, admins are told. */
export async function rejectTransition(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  before: Subscription,
  trigger: Trigger | undefined,
  input: TransitionInput,
  obstacle?: Obstacle,
): Promise<TransitionResult> {
  const { occurredAt, externalSubscriptionId, invoice, isReported } = input
  const why = obstacle?.why ?? `Transition '${trigger ?? 'changed'}' is not allowed from status ${shownStatus(before)}.`
  const refused = (subscription: Subscription) => ({ subscription, outcome: 'refused', why }) as const
  if (!PAYING_TRIGGERS.includes(trigger) || occurredAt === undefined) return refused(before)
  const details = { trigger, externalSubscriptionId, invoice: invoice?.externalInvoiceId }
  if (obstacle?.existingSubscriptionId)
    return refused(await saveConflict(tx, ctx, before, input, { ...details, ...obstacle }))
  if (!isReported) await emitWebhookFailure(ctx, tx, before, { ...details, why })
  if (trigger === 'paid' && invoice?.amount && hasEnded(before)) await offerLateRefund(tx, ctx, before, input)
  if (!hasEnded(before) || before.endedBy === 'request') await cancelSurplusAtProvider(tx, ctx, before, input)
  return refused(before)
}

/**
 * Stores that a subscription is paid while another one of its entity is in force, with the link by which an admin can cancel
 * it. Nothing is canceled by itself.
 */
async function saveConflict(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  before: Subscription,
  input: TransitionInput,
  details: { existingSubscriptionId?: string; why: string },
): Promise<Subscription> {
  const subscriptionId = details.existingSubscriptionId!
  const isKnown = before.conflict?.subscriptionId === subscriptionId
  const conflict = isKnown ? before.conflict : { subscriptionId, since: toIsoString(now()) }
  const after = { ...before, ...nextProviderLink(before, input), conflict }
  await subscriptionRows.update(tx, after)
  await rescheduleLifecycle(tx, ctx, before, after)
  const { providerKind } = after
  if (!isKnown) await emitSubscriptionEvent(ctx, tx, after, 'subscription-conflict', { ...details, providerKind })
  if (!input.isReported) await emitWebhookFailure(ctx, tx, after, details)
  return after
}

/** Tells admins of a payment that arrived after the end, so that they can give it back. */
async function offerLateRefund(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  row: Subscription,
  { invoice, ...input }: TransitionInput,
) {
  const kind = input.providerKind ?? row.providerKind
  if (!kind || (invoice!.paidAt ?? input.occurredAt!) < Date.parse(row.updated) - CLOCK_TOLERANCE_MS) return
  await offerRefund(tx, ctx, row, kind, invoice!, 'It was paid after the subscription had ended.')
}
const CLOCK_TOLERANCE_MS = 1_000 // providers report whole seconds

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
