import { expect } from 'bun:test'
import { issue } from '../../src/accounts/tokens'
import { register } from '../../src/accounts/users'
import { moveClock, now } from '../../src/core/clock'
import { runDue } from '../../src/jobs/runner'
import { moved, type Told } from '../../src/payments/subscriptions/machine'
import type { Trigger } from '../../src/payments/subscriptions/moves'
import { type Answer, client, house, type Name } from '../house'

export const ID = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/)
export const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
export const FORBIDDEN = [403, 'FORBIDDEN']
export const STRANGER = [401, 'UNAUTHENTICATED']
export const NO_PLAN = [404, 'PLAN_NOT_FOUND']
export const NO_SUBSCRIPTION = [404, 'SUBSCRIPTION_NOT_FOUND']

/** What came back where nothing was refused. */
export async function done(answer: Promise<Answer>, status = 200) {
  const { status: was, body } = await answer
  expect([was, body?.message]).toEqual([status, undefined])
  return body
}

type Connection = { name: string; kind: string; metadata: object; authentication: object }

/** A tenant that sells: plans for 20 a month and 200 a year, for nothing, and at a price of each one's own. */
export async function shop(connection?: Connection) {
  const own = await house()
  const admin = own.as('admin')
  const plan = (body: object) => done(admin.post('/plans', body))
  const pro = await plan({ name: 'Pro', monthlyPrice: 20, yearlyPrice: 200, limits: { projects: 2 } })
  const free = await plan({ name: 'Free', monthlyPrice: 0, yearlyPrice: 0 })
  const dynamic = await plan({ name: 'Made to measure', dynamic: true })
  const source = connection && (await done(admin.post('/integration-sources', connection), 201))._id
  if (source)
    await done(admin.put('/payments/configuration', { metadata: { isEnabled: true, paymentSourceId: source } }))
  let made = 0
  return {
    ...own,
    ...{ admin, plan, source: source as string },
    ...{ pro: pro._id as string, free: free._id as string, dynamic: dynamic._id as string },
    /** A coupon, as it was made. */
    coupon: (body: object) =>
      done(
        admin.post('/coupons', { code: `code${made++}`, discountType: 'percentage', discountValue: 50, ...body }),
        201,
      ),
    /** Somebody new. */
    async customer() {
      const name = `customer${made++}`
      const { _id } = await register(own.tenant, { username: name, email: `${name}@${own.id}.test` }, ['user'])
      const { token } = await issue(own.tenant, _id, { nickname: 'test' })
      return { id: _id, ...client(own.origin, { 'x-api-key': token }) }
    },
    /** A subscription that waits. */
    pending: async (who: Name = 'user', body: object = {}) =>
      (await done(own.as(who).post('/subscriptions', { planId: pro._id, billingCycle: 'monthly', ...body })))
        ._id as string,
    /** Has a provider tell something of a subscription. */
    told: (_id: string, trigger: Trigger | 'updated' | 'voided', told: Told = {}) =>
      own.tenant.write((tx) => moved(tx, own.tenant, { _id }, trigger, told)),
    status: async (id: string) => (await done(admin.get(`/subscriptions/${id}`))).status as string,
    /** Has time go on (ms), and what is due done. */
    async later(ms: number) {
      moveClock(now() + ms)
      await runDue(own.tenant)
    },
    /** The names of what has happened to payments, oldest first. */
    events: async () =>
      ((await done(admin.get('/events?source=payments&sort=created&limit=1000'))) as { eventName: string }[]).map(
        ({ eventName }) => eventName,
      ),
  }
}
export type Shop = Awaited<ReturnType<typeof shop>>
