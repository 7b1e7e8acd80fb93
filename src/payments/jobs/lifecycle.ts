import { DAY_MS, HOUR_MS, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import type { JobResult } from '../../jobs/queue'
import { JobError, type JobHandler } from '../../jobs/worker'
import { getSettings } from '../../platform/settings/tenant-settings'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { paymentsSettings } from '../payments-settings'
import { providerWait } from '../providers/errors'
import type { ProviderSubscription } from '../providers/provider'
import { cancelAtProvider, throwJobFailure } from '../subscriptions/cancellation'
import { carryOut } from '../subscriptions/effect-executor'
import { providerCancelOf } from '../subscriptions/follow-ups'
import { isLinked, type LifecyclePayload, nextCheckAt, nextEndOf } from '../subscriptions/schedule'
import { findActiveSubscription, transition } from '../subscriptions/state-machine'
import { findSubscription } from '../subscriptions/subscriptions'
import { hasEnded } from '../subscriptions/transitions'
import type { Subscription } from '../tables'
import { isLapsedAtProvider } from './drift'
import { reconcile } from './reconciliation'

const MAX_CHECKS_AFTER_END = 84 // with growing pauses of up to an hour: about three days

/** What the provider says about a subscription: its state, if it knows it; or nothing, if it could not be reached. */
type Answer = { isAnswered: boolean; theirs?: ProviderSubscription; retryAfter?: number }

/**
 * Reconciles a subscription with its provider each hour, and ends it when its time is up, also if the provider does not
 * answer. The provider is told later, after it was asked once more whether it was paid after all.
 */
export const lifecycleJob: JobHandler = {
  isOutgoing: true,
  retryFor: Number.POSITIVE_INFINITY,
  async run(tenant, { payload, attempts }): Promise<JobResult> {
    const { subscription: id, asked: lastCheckAt } = payload as LifecyclePayload
    const row = await findSubscription(tenant.db, id)
    if (!row) return { state: 'done' }
    const grace = (await getSettings(tenant, paymentsSettings)).gracePeriodDays * DAY_MS
    const time = now()
    const isEnding = hasEnded(row) || row.status === 'lapsed' || isDue(row, grace)
    const shouldReconcile = isLinked(row) && (isEnding || time >= lastCheckAt + HOUR_MS)
    const answer = shouldReconcile ? await ask(reconcile(tenant, row)) : { isAnswered: true }
    if (hasEnded(row)) {
      if (answer.isAnswered || attempts >= MAX_CHECKS_AFTER_END) return { state: 'done' }
      throw unreachable(answer)
    }
    const current = (await findSubscription(tenant.db, id)) ?? row
    const ended = isDue(current, grace) ? await tenant.write((tx) => endIfDue(tx, tenant, id, grace)) : current
    if (!ended) return { state: 'done' }
    const after = ended.status === 'lapsed' ? await endAtProvider(tenant, ended, answer) : ended
    if ('due' in after) return { state: 'again', due: after.due, payload: { subscription: id, asked: time } }
    const checkedAt = shouldReconcile ? time : lastCheckAt
    // An ended subscription is checked once more, because the provider may have another invoice.
    const due = hasEnded(after) ? (isLinked(after) ? time + HOUR_MS : undefined) : nextCheckAt(after, grace, checkedAt)
    if (due === undefined) return { state: 'done' }
    return { state: 'again', due, payload: { subscription: id, asked: checkedAt } satisfies LifecyclePayload }
  },
}

const isDue = (row: Subscription, grace: number) => (nextEndOf(row, grace)?.at ?? Number.POSITIVE_INFINITY) <= now()

/** Returns the answer of the provider. A removed connection (404) counts as an answer. Failures were logged already. */
const ask = (reconciliation: Promise<ProviderSubscription | undefined>): Promise<Answer> =>
  reconciliation.then(
    (theirs) => ({ isAnswered: true, theirs }),
    (error) => {
      if (error instanceof Problem) return { isAnswered: error.status === 404, retryAfter: providerWait(error) }
      throw error
    },
  )

const unreachable = ({ retryAfter }: Answer) =>
  new JobError('The payment provider could not be reached.', { retryAfter })

/** Ends a subscription whose time is up, here. Returns its current row. */
async function endIfDue(tx: Tx, tenant: Tenant, id: string, grace: number): Promise<Subscription | undefined> {
  const row = await findSubscription(tx, id)
  const nextEnd = row && nextEndOf(row, grace)
  if (!nextEnd || nextEnd.at > now()) return row
  const { subscription } = await transition(tx, tenant, row, nextEnd.trigger)
  if (subscription.status === 'abandoned') await carryOut(tx, tenant, providerCancelOf(id, subscription))
  return subscription
}

/**
 * Cancels a subscription that has lapsed at its provider, unless the provider goes on trying to collect the payment. Returns
 * its row when that is done, or when to look again. A payment until then has taken it back.
 * @throws JobError when the provider could not be reached
 */
async function endAtProvider(
  tenant: Tenant,
  row: Subscription,
  answer: Answer,
): Promise<Subscription | { due: number }> {
  if (!answer.isAnswered) throw unreachable(answer)
  const { theirs } = answer
  // It is paid, and waits for an admin.
  if (row.conflict || (theirs && !isLapsedAtProvider(theirs) && !hasEnded(theirs) && theirs.status !== 'pending'))
    return { due: now() + HOUR_MS }
  const nextAttempt = (await findActiveSubscription(tenant.db, row)) ? undefined : theirs?.nextPaymentAttempt
  if (nextAttempt !== undefined && nextAttempt > now()) return { due: Math.min(nextAttempt + 60_000, now() + HOUR_MS) }
  const isEnded = await cancelAtProvider(tenant, row).catch((error) => {
    if (error instanceof Problem && error.status === 404) return true
    return throwJobFailure(error)
  })
  if (!isEnded) return { due: now() + HOUR_MS }
  return (await tenant.write((tx) => confirmEnd(tx, tenant, row))) ?? row
}

/** Stores that the provider has canceled a subscription. */
async function confirmEnd(tx: Tx, tenant: Tenant, { _id }: Subscription): Promise<Subscription | undefined> {
  const row = await findSubscription(tx, _id)
  if (row?.status !== 'lapsed') return row
  return (await transition(tx, tenant, row, 'canceled')).subscription
}
