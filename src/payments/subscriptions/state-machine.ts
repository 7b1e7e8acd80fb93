import { and, eq, inArray, isNotNull, ne, or, sql } from 'drizzle-orm'
import { now } from '../../core/clock'
import { notFound } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { prepareFirst } from '../../storage/prepared-statements'
import type { Tenant } from '../../tenancy/tenants'
import { type Billable, subscriptionsOfEntity } from '../billable-entity'
import { findRedemption } from '../coupons/redemption'
import { type Subscription, subscriptions } from '../tables'
import { decide, firstStatus } from './decision'
import { carryOut } from './effect-executor'
import type { Facts, TransitionEvent, TransitionInput, TransitionResult } from './transition-input'
import { ACTIVE_STATUSES, type EventMeaning, type Trigger } from './transitions'

/**
 * Applies a trigger to a subscription, with all that follows from it, in this transaction. Nothing else changes a status.
 * @throws 404 SUBSCRIPTION_NOT_FOUND
 */
export async function transition(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  { _id }: Pick<Subscription, '_id'>,
  meaning: Trigger | EventMeaning,
  input: TransitionInput = {},
): Promise<TransitionResult> {
  const before = (await findById(tx, { _id })) ?? notFound('subscription')
  const event = { ...input, meaning }
  const { next: subscription, effects, ...result } = decide(before, event, await readFacts(tx, before, event))
  await carryOut(tx, ctx, effects)
  return { subscription, ...result }
}

const findById = prepareFirst((tx) => {
  const hasId = eq(subscriptions._id, sql.placeholder('_id'))
  return tx.select().from(subscriptions).where(hasId)
})

/** Reads what a decision depends on: about others and the coupon, only when the status may change. */
async function readFacts(tx: Tx, before: Subscription, event: TransitionEvent): Promise<Facts> {
  const time = now()
  const to = firstStatus(before, event, time)
  const mayChange = to !== before.status
  const { couponId } = before
  return {
    time,
    owner: await findOwner(tx, before, event),
    others: mayChange ? await listOthers(tx, before) : [],
    ...(couponId && mayChange && to === 'active' && { redemption: await findRedemption(tx, before._id, couponId) }),
  }
}

/** Returns the subscription that has the provider's id of the input, which most often is `before`. */
async function findOwner(tx: Tx, before: Subscription, input: TransitionInput): Promise<Subscription | undefined> {
  const external = input.externalSubscriptionId ?? before.externalSubscriptionId
  const kind = input.providerKind ?? before.providerKind
  if (!external || !kind) return
  if (external === before.externalSubscriptionId && kind === before.providerKind) return before
  return findByExternalId(tx, { kind, external })
}

/** Returns the subscription with a provider's id. */
export const findByExternalId = prepareFirst((tx) => {
  const { providerKind, externalSubscriptionId } = subscriptions
  const [kind, external] = [sql.placeholder('kind'), sql.placeholder('external')]
  const hasId = and(eq(providerKind, kind), eq(externalSubscriptionId, external))
  return tx.select().from(subscriptions).where(hasId)
})

/** Returns the other subscriptions of an entity that are in force, overdue, or kept from coming into force. */
async function listOthers(tx: Tx, row: Subscription): Promise<Subscription[]> {
  const { _id, status, conflict } = subscriptions
  const isConcerned = or(inArray(status, [...ACTIVE_STATUSES, 'past_due']), isNotNull(conflict))
  const isOther = and(subscriptionsOfEntity(row), ne(_id, row._id), isConcerned)
  return tx.select().from(subscriptions).where(isOther)
}

/** Returns the active or trialing subscription of an entity, other than the given one. */
export async function findActiveSubscription(tx: Pick<Tx, 'select'>, row: Billable & { _id?: string }) {
  const { _id, status } = subscriptions
  const isActive = and(subscriptionsOfEntity(row), inArray(status, ACTIVE_STATUSES), ne(_id, row._id ?? ''))
  return tx.select().from(subscriptions).where(isActive).get()
}
