import { eq } from 'drizzle-orm'
import { settingsOf } from '../../accounts/settings'
import { DAY, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import type { Ending } from '../../jobs/queue'
import { Failure, type Work } from '../../jobs/work'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { callOff, dueOf, endOf, isAttached, type Time } from '../subscriptions/arranging'
import { moved } from '../subscriptions/machine'
import { ENDED } from '../subscriptions/moves'
import { type Subscription, subscriptions } from '../tables'
import { reconcile } from './reconciling'

const HOUR = 3_600_000
const TRIES = 84 // of ever longer pauses, up to an hour, after which what ended is not looked at any more: some three days

/**
 * What time brings to a subscription: each hour it is compared with what the provider has, and when its time is up it ends.
 * Whether it was paid after all the provider is asked before, as far as it answers.
 */
export const timing: Work = {
  patience: Number.POSITIVE_INFINITY,
  async run(tenant, { payload, attempts }): Promise<Ending> {
    const { subscription: id, asked } = payload as Time
    const row = await rowOf(tenant, id)
    if (!row) return { state: 'done' }
    const grace = (await settingsOf(tenant, 'payments-configuration')).gracePeriodDays * DAY
    const time = now()
    const looks = isAttached(row) && (ENDED.includes(row.status) || isDue(row, grace) || time >= asked + HOUR)
    const answered = !looks || (await isAnswered(reconcile(tenant, row)))
    if (ENDED.includes(row.status)) {
      if (answered || attempts >= TRIES) return { state: 'done' }
      throw new Failure('The payment provider could not be asked what it has.')
    }
    const after = isDue((await rowOf(tenant, id)) ?? row, grace)
      ? await tenant.write((tx) => end(tx, tenant, id, grace))
      : await rowOf(tenant, id)
    if (!after) return { state: 'done' }
    const seen = looks ? time : asked
    // What has ended is looked at once more: the provider may know of an invoice.
    const due = ENDED.includes(after.status) ? (isAttached(after) ? time + HOUR : undefined) : dueOf(after, grace, seen)
    if (due === undefined) return { state: 'done' }
    return { state: 'again', due, payload: { subscription: id, asked: seen } satisfies Time }
  },
}

const rowOf = ({ db }: Pick<Tenant, 'db'>, id: string): Promise<Subscription | undefined> =>
  db.select().from(subscriptions).where(eq(subscriptions._id, id)).get()

const isDue = (row: Subscription, grace: number) => (endOf(row, grace)?.at ?? Number.POSITIVE_INFINITY) <= now()

/** What goes wrong with a provider was reported already; where the connection is gone, there is nobody to ask. */
const isAnswered = (asking: Promise<void>): Promise<boolean> =>
  asking.then(
    () => true,
    (error) => {
      if (error instanceof Problem) return error.status === 404
      throw error
    },
  )

/** Ends what is over, here and at the provider. */
async function end(tx: Tx, tenant: Tenant, id: string, grace: number): Promise<Subscription | undefined> {
  const row = await tx.select().from(subscriptions).where(eq(subscriptions._id, id)).get()
  const ending = row && endOf(row, grace)
  if (!ending || ending.at > now()) return row
  const { subscription } = await moved(tx, tenant, row, ending.trigger)
  await callOff(tx, tenant, id, subscription)
  return subscription
}
