import { DAY_MS, HOUR_MS, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import type { JobResult } from '../../jobs/queue'
import { JobError, type JobHandler } from '../../jobs/worker'
import { getSettings } from '../../platform/settings/tenant-settings'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { paymentsSettings } from '../payments-settings'
import {
  isLinked,
  type LifecyclePayload,
  nextCheckAt,
  nextEndOf,
  scheduleProviderCancel,
} from '../subscriptions/schedule'
import { transition } from '../subscriptions/state-machine'
import { findSubscription } from '../subscriptions/subscriptions'
import { hasEnded } from '../subscriptions/transitions'
import type { Subscription } from '../tables'
import { reconcile } from './reconciliation'

const MAX_CHECKS_AFTER_END = 84 // with growing pauses of up to an hour: about three days

/**
 * Reconciles a subscription with its provider each hour, and ends it when its time is up. Before it ends, the provider is
 * asked whether it was paid after all. If the provider does not answer, the subscription ends all the same.
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
    const shouldReconcile = isLinked(row) && (hasEnded(row) || isDue(row, grace) || time >= lastCheckAt + HOUR_MS)
    const isReconciled = !shouldReconcile || (await isAnswered(reconcile(tenant, row)))
    if (hasEnded(row)) {
      if (isReconciled || attempts >= MAX_CHECKS_AFTER_END) return { state: 'done' }
      throw new JobError('The payment provider could not be reached.')
    }
    const after = isDue((await findSubscription(tenant.db, id)) ?? row, grace)
      ? await tenant.write((tx) => endIfDue(tx, tenant, id, grace))
      : await findSubscription(tenant.db, id)
    if (!after) return { state: 'done' }
    const checkedAt = shouldReconcile ? time : lastCheckAt
    // An ended subscription is checked once more, because the provider may have another invoice.
    const due = hasEnded(after) ? (isLinked(after) ? time + HOUR_MS : undefined) : nextCheckAt(after, grace, checkedAt)
    if (due === undefined) return { state: 'done' }
    return { state: 'again', due, payload: { subscription: id, asked: checkedAt } satisfies LifecyclePayload }
  },
}

const isDue = (row: Subscription, grace: number) => (nextEndOf(row, grace)?.at ?? Number.POSITIVE_INFINITY) <= now()

/** Returns whether the provider answered. A removed connection (404) counts as an answer. Failures were logged already. */
const isAnswered = (reconciliation: Promise<void>): Promise<boolean> =>
  reconciliation.then(
    () => true,
    (error) => {
      if (error instanceof Problem) return error.status === 404
      throw error
    },
  )

/** Ends a subscription whose time is up, here and at the provider. Returns its current row. */
async function endIfDue(tx: Tx, tenant: Tenant, id: string, grace: number): Promise<Subscription | undefined> {
  const row = await findSubscription(tx, id)
  const nextEnd = row && nextEndOf(row, grace)
  if (!nextEnd || nextEnd.at > now()) return row
  const { subscription } = await transition(tx, tenant, row, nextEnd.trigger)
  await scheduleProviderCancel(tx, tenant, id, subscription)
  return subscription
}
