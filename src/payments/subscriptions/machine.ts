import { and, eq, inArray, ne, sql } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { missing } from '../../core/problem'
import { enqueue } from '../../jobs/queue'
import { compiled, rowsOf } from '../../storage/compiled'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { type Billable, ofEntity } from '../billable'
import { redeemed } from '../coupons/redemption'
import { keepInvoice } from '../invoices/keeping'
import type { ProviderInvoice, ProviderKind, Standing } from '../providers/provider'
import { type Subscription, subscriptions } from '../tables'
import { arrange, callOff, endBenefit, rearrange } from './arranging'
import { REPRICE } from './kinds'
import { ENDED, IN_FORCE, isInForce, moves, type Status, type Trigger } from './moves'
import { priceOf } from './shown'
import { namesOf, standingOf } from './standing'
import { tell, tellFailure } from './telling'

/** What comes with a trigger. */
export type Told = Standing & {
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
  known?: boolean
}

export type Moved = {
  subscription: Subscription
  /** `stale`: something later was applied already. `refused`: it can't be, for the reason that `why` tells. */
  outcome: 'applied' | 'stale' | 'refused'
  why?: string
}

/** What an `updated` comes to: the status that the provider tells. */
const byStatus: Record<NonNullable<Standing['status']>, Trigger | undefined> = {
  active: 'activated',
  trialing: 'trial',
  past_due: 'payment failed',
  canceled: 'canceled',
  expired: 'expired',
  pending: undefined,
}

/** Triggers after which somebody pays, or may use what they don't yet. */
const PAYING: (Trigger | undefined)[] = ['activated', 'trial', 'paid']

/**
 * Moves a subscription, with all that follows from it, in this transaction: nothing else changes a status. Invoices are
 * kept whatever else comes of it. @throws 404 SUBSCRIPTION_NOT_FOUND
 */
export async function moved(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  { _id }: Pick<Subscription, '_id'>,
  meaning: Trigger | 'updated' | 'voided',
  told: Told = {},
): Promise<Moved> {
  const [row] = await byId(tx, { _id })
  const before = row ?? missing('subscription')
  if (told.invoice) await keepInvoice(tx, ctx, before, meaning, told.invoice, told.providerKind)
  // What became of it the provider is asked once more.
  if (told.invoice && ENDED.includes(before.status)) await arrange(tx, ctx, before)
  if (meaning === 'voided') return { subscription: before, outcome: 'applied' }
  const { occurredAt } = told
  if (occurredAt !== undefined && before.lastEventAt !== null && occurredAt < before.lastEventAt)
    return { subscription: before, outcome: 'stale', why: 'Something that happened later was applied already.' }
  const trigger = meaning === 'updated' ? told.status && byStatus[told.status] : meaning
  // Who is late to pay has begun before, though nobody told us: these are two moves.
  if (before.status === 'pending' && trigger === 'payment failed' && told.status === 'past_due') {
    const begun = await moved(tx, ctx, before, 'activated', told)
    return begun.subscription.status === 'pending' ? begun : moved(tx, ctx, before, meaning, told)
  }
  const to = targetOf(before, trigger, told)
  const obstacle = await obstacleOf(tx, before, trigger, to, told)
  if (!to || obstacle) return refused(tx, ctx, before, trigger, told, obstacle)
  const activated = to === 'active' && before.status !== 'active'
  const changed = { ...before, ...standingOf(before, to, trigger, told), status: to, updated: iso(now()) }
  const subscription = activated ? await redeemed(tx, ctx, changed) : changed
  await rows.update(tx, subscription)
  await tell(ctx, tx, before, subscription, told.by)
  await rearrange(tx, ctx, before, subscription)
  if (isInForce(subscription) && !isInForce(before)) await endLate(tx, ctx, subscription)
  if (before.externalSubscriptionId && before.externalSubscriptionId !== subscription.externalSubscriptionId)
    await callOff(tx, ctx, _id, { ...before, externalCheckoutId: null })
  if (subscription.couponBenefitEndsAt !== before.couponBenefitEndsAt) await endBenefit(tx, ctx, subscription)
  if (isMispriced(before, subscription))
    await enqueue(ctx, tx, { kind: REPRICE, payload: { subscription: _id }, lane: _id })
  return { subscription, outcome: 'applied' }
}

/** Who began anew has given up what they were late to pay: its provider would try to have that paid, too. */
async function endLate(tx: Tx, ctx: Pick<Tenant, 'tenant'>, row: Subscription) {
  const { _id, status } = subscriptions
  const late = and(ofEntity(row), eq(status, 'past_due'), ne(_id, row._id))
  for (const one of await tx.select().from(subscriptions).where(late)) {
    const { subscription } = await moved(tx, ctx, one, 'canceled')
    await callOff(tx, ctx, one._id, subscription)
  }
}

/**
 * Whether the provider may take another amount: that of an earlier checkout, or one before the price was changed, or of a
 * coupon that was lost. Who pays for something that our last checkout has not made may have said the price themselves.
 */
function isMispriced(before: Subscription, after: Subscription) {
  const { externalSubscriptionId: made, status } = before
  const known = status === 'pending' ? before.checkoutAmount : priceOf(before)
  // What was in force without a provider was for nothing once.
  const isOther = (made !== null || status !== 'pending') && made !== after.externalSubscriptionId
  const isKnown = isInForce(after) && after.externalSubscriptionId !== null
  return isKnown && (isOther || (known !== null && known !== priceOf(after)))
}

const byId = compiled((tx) =>
  tx
    .select()
    .from(subscriptions)
    .where(eq(subscriptions._id, sql.placeholder('_id'))),
)
const rows = rowsOf(subscriptions)

/** Where it goes to; undefined for what the table does not know. */
function targetOf({ status }: Subscription, trigger: Trigger | undefined, { invoice }: Told): Status | undefined {
  // An update that says nothing of the status leaves it, as does an invoice of nothing, such as that of a trial.
  const stays = !trigger || (trigger === 'paid' && invoice?.amount === 0 && ['pending', 'trialing'].includes(status))
  if (stays) return ENDED.includes(status) ? undefined : status
  return moves[status][trigger]
}

type Obstacle = { why: string; existingSubscriptionId?: string }

/** Why it can't be moved, though the table would. */
async function obstacleOf(
  tx: Tx,
  before: Subscription,
  trigger: Trigger | undefined,
  to: Status | undefined,
  { externalSubscriptionId: external, providerKind = before.providerKind ?? undefined }: Told,
): Promise<Obstacle | undefined> {
  const foreign = { why: `It is about another subscription at the provider: ${external}.` }
  if (external && external !== before.externalSubscriptionId) {
    // Of several checkouts of a pending one, the one that is paid counts.
    const free = before.providerKind === null && before.status !== 'pending' && priceOf(before) === 0
    const decided =
      free || (before.externalSubscriptionId && (before.status !== 'pending' || !PAYING.includes(trigger)))
    if (decided || (providerKind && (await byExternal(tx, providerKind, external)))) return foreign
  }
  if (!to || !IN_FORCE.includes(to) || isInForce(before)) return
  const other = await inForce(tx, before)
  const why = 'There is a subscription of the same entity in force already.'
  return other && { why, existingSubscriptionId: other._id }
}

/** A subscription by the name that a provider has for it. */
export const byExternal = (
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
export const inForce = (
  tx: Pick<Tx, 'select'>,
  { _id = '', ...entity }: Billable & { _id?: string },
): Promise<Subscription | undefined> =>
  tx
    .select()
    .from(subscriptions)
    .where(and(ofEntity(entity), inArray(subscriptions.status, IN_FORCE), ne(subscriptions._id, _id)))
    .get()

async function refused(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  before: Subscription,
  trigger: Trigger | undefined,
  told: Told,
  obstacle?: Obstacle,
): Promise<Moved> {
  const { occurredAt, externalSubscriptionId, invoice, known: isKnown } = told
  const why = obstacle?.why ?? `Nothing that is ${before.status} can be ${trigger ?? 'changed'}.`
  const outcome = { outcome: 'refused', why } as const
  // Somebody pays for what they don't get: people have to look at it.
  if (!PAYING.includes(trigger) || occurredAt === undefined) return { subscription: before, ...outcome }
  const details = { trigger, externalSubscriptionId, invoice: invoice?.externalInvoiceId }
  if (!isKnown) await tellFailure(ctx, tx, before, { ...details, ...obstacle, why })
  if (!obstacle?.existingSubscriptionId) await endThere(tx, ctx, before, told)
  if (!obstacle?.existingSubscriptionId || before.externalSubscriptionId) return { subscription: before, ...outcome }
  // By this it can be canceled there.
  const known = namesOf(before, told)
  await tx.update(subscriptions).set(known).where(eq(subscriptions._id, before._id))
  return { subscription: { ...before, ...known }, ...outcome }
}

/** What is paid for nothing, or twice, ends at the provider. */
async function endThere(tx: Tx, ctx: Pick<Tenant, 'tenant'>, row: Subscription, told: Told) {
  const external = told.externalSubscriptionId ?? row.externalSubscriptionId
  const kind = told.providerKind ?? row.providerKind
  if (!external || !kind) return
  const own = await byExternal(tx, kind, external)
  if (own && !ENDED.includes(own.status)) return
  const providerSourceId = told.providerSourceId ?? row.providerSourceId
  const attachment = { providerKind: kind, externalSubscriptionId: external, externalCheckoutId: null }
  await callOff(tx, ctx, row._id, { ...attachment, providerSourceId })
}
