import { expect } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { registerUser } from '../../src/accounts/users/users'
import { moveClock, now } from '../../src/core/clock'
import { runDueJobs } from '../../src/jobs/runner'
import { transition } from '../../src/payments/subscriptions/state-machine'
import type { TransitionInput } from '../../src/payments/subscriptions/transition-input'
import type { Trigger } from '../../src/payments/subscriptions/transitions'
import { apiClient, createTestTenant, type TestResponse, type TestUser } from '../test-tenant'

export const NO_PLAN = [404, 'PLAN_NOT_FOUND']
export const NO_SUBSCRIPTION = [404, 'SUBSCRIPTION_NOT_FOUND']

/** Expects this status without an error message, and returns the body. */
export async function expectOk(answer: Promise<TestResponse>, status = 200) {
  const { status: actual, body } = await answer
  expect([actual, body?.message]).toEqual([status, undefined])
  return body
}

type Connection = { name: string; kind: string; metadata: object; authentication: object }

/** Creates a tenant with a plan for 20 a month and 200 a year, a free one and a dynamic one, and a connection if given. */
export async function createPaymentsFixture(connection?: Connection) {
  const own = await createTestTenant()
  const admin = own.as('admin')
  const createPlan = (body: object) => expectOk(admin.post('/plans', body))
  const pro = await createPlan({ name: 'Pro', monthlyPrice: 20, yearlyPrice: 200, limits: { projects: 2 } })
  const free = await createPlan({ name: 'Free', monthlyPrice: 0, yearlyPrice: 0 })
  const dynamic = await createPlan({ name: 'Made to measure', dynamic: true })
  const source = connection && (await expectOk(admin.post('/integration-sources', connection), 201))._id
  if (source)
    await expectOk(admin.put('/payments/configuration', { metadata: { isEnabled: true, paymentSourceId: source } }))
  let counter = 0
  return {
    ...own,
    ...{ admin, createPlan, source: source as string },
    ...{ pro: pro._id as string, free: free._id as string, dynamic: dynamic._id as string },
    /** Creates a coupon, and returns it. */
    createCoupon: (body: object) =>
      expectOk(
        admin.post('/coupons', { code: `code${counter++}`, discountType: 'percentage', discountValue: 50, ...body }),
        201,
      ),
    /** Creates a user, and returns their id and client. */
    async createCustomer() {
      const name = `customer${counter++}`
      const { _id } = await registerUser(own.tenant, { username: name, email: `${name}@${own.id}.test` }, ['user'])
      const { token } = await issueApiToken(own.tenant, _id, { nickname: 'test' })
      return { id: _id, ...apiClient(own.origin, { 'x-api-key': token }) }
    },
    /** Creates a pending subscription, and returns its id. */
    createPending: async (who: TestUser = 'user', body: object = {}) =>
      (await expectOk(own.as(who).post('/subscriptions', { planId: pro._id, billingCycle: 'monthly', ...body })))
        ._id as string,
    /** Applies a trigger to a subscription as if its provider had sent it. */
    applyTrigger: (_id: string, trigger: Trigger | 'updated' | 'voided', input: TransitionInput = {}) =>
      own.tenant.write((tx) => transition(tx, own.tenant, { _id }, trigger, input)),
    status: async (id: string) => (await expectOk(admin.get(`/subscriptions/${id}`))).status as string,
    /** Moves the clock by ms and runs the due jobs. */
    async advanceClock(ms: number) {
      moveClock(now() + ms)
      await runDueJobs(own.tenant)
    },
    /** Returns the names of the events of payments, oldest first. */
    events: async () =>
      ((await expectOk(admin.get('/events?source=payments&sort=created&limit=1000'))) as { eventName: string }[]).map(
        ({ eventName }) => eventName,
      ),
  }
}
export type PaymentsFixture = Awaited<ReturnType<typeof createPaymentsFixture>>
