import { expect } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { registerUser } from '../../src/accounts/users/users'
import { moveClock, now } from '../../src/core/clock'
import { runDueJobs } from '../../src/jobs/runner'
import { type TransitionInput, transition } from '../../src/payments/subscriptions/state-machine'
import type { Trigger } from '../../src/payments/subscriptions/transitions'
import { apiClient, createTestTenant, type TestResponse, type TestUser } from '../test-tenant'

export const ID = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/)
export const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
export const FORBIDDEN = [403, 'FORBIDDEN']
export const UNAUTHENTICATED = [401, 'UNAUTHENTICATED']
export const NO_PLAN = [404, 'PLAN_NOT_FOUND']
export const NO_SUBSCRIPTION = [404, 'SUBSCRIPTION_NOT_FOUND']

/** What came back where nothing was refused. */
export async function done(answer: Promise<TestResponse>, status = 200) {
  const { status: was, body } = await answer
  expect([was, body?.message]).toEqual([status, undefined])
  return body
}

type Connection = { name: string; kind: string; metadata: object; authentication: object }

/** A tenant that sells: plans for 20 a month and 200 a year, for nothing, and at a price of each one's own. */
export async function createPaymentsFixture(connection?: Connection) {
  const own = await createTestTenant()
  const admin = own.as('admin')
  const plan = (body: object) => done(admin.post('/plans', body))
  const pro = await plan({ name: 'Pro', monthlyPrice: 20, yearlyPrice: 200, limits: { projects: 2 } })
  const free = await plan({ name: 'Free', monthlyPrice: 0, yearlyPrice: 0 })
  const dynamic = await plan({ name: 'Made to measure', dynamic: true })
  const source = connection && (await done(admin.post('/integration-sources', connection), 201))._id
  if (source)
    await done(admin.put('/payments/configuration', { metadata: { isEnabled: true, paymentSourceId: source } }))
  let counter = 0
  return {
    ...own,
    ...{ admin, plan, source: source as string },
    ...{ pro: pro._id as string, free: free._id as string, dynamic: dynamic._id as string },
    /** A coupon, as it was made. */
    coupon: (body: object) =>
      done(
        admin.post('/coupons', { code: `code${counter++}`, discountType: 'percentage', discountValue: 50, ...body }),
        201,
      ),
    /** Somebody new. */
    async customer() {
      const name = `customer${counter++}`
      const { _id } = await registerUser(own.tenant, { username: name, email: `${name}@${own.id}.test` }, ['user'])
      const { token } = await issueApiToken(own.tenant, _id, { nickname: 'test' })
      return { id: _id, ...apiClient(own.origin, { 'x-api-key': token }) }
    },
    /** A subscription that waits. */
    pending: async (who: TestUser = 'user', body: object = {}) =>
      (await done(own.as(who).post('/subscriptions', { planId: pro._id, billingCycle: 'monthly', ...body })))
        ._id as string,
    /** Has a provider tell something of a subscription. */
    told: (_id: string, trigger: Trigger | 'updated' | 'voided', told: TransitionInput = {}) =>
      own.tenant.write((tx) => transition(tx, own.tenant, { _id }, trigger, told)),
    status: async (id: string) => (await done(admin.get(`/subscriptions/${id}`))).status as string,
    /** Has time go on (ms), and what is due done. */
    async later(ms: number) {
      moveClock(now() + ms)
      await runDueJobs(own.tenant)
    },
    /** The names of what has happened to payments, oldest first. */
    events: async () =>
      ((await done(admin.get('/events?source=payments&sort=created&limit=1000'))) as { eventName: string }[]).map(
        ({ eventName }) => eventName,
      ),
  }
}
export type PaymentsFixture = Awaited<ReturnType<typeof createPaymentsFixture>>
