import { afterAll, afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import { moveClock, now } from '../../../src/core/clock'
import { logOutput } from '../../../src/core/log'
import type { Problem } from '../../../src/core/problem'
import { providerOf } from '../../../src/payments/providers'
import type { ProviderKind } from '../../../src/payments/providers/provider'
import { startPaddle } from '../../fakes/vendors/paddle'
import { startPaypal } from '../../fakes/vendors/paypal'
import { startStripe } from '../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createPaymentsFixture, expectOk } from '../fixtures'
import { createOrder, createResolvedConnection, createSubscriptionRow } from './provider-fixtures'

allowPrivateNetwork()
const [stripe, paypal, paddle] = [await startStripe(), await startPaypal(), await startPaddle()]
stripe.price('price_pro', 2000)
paypal.plan('P-PRO', '20.00')
paddle.price('pri_pro', '2000')
const logSpy = spyOn(logOutput, 'write')
beforeEach(() => void logSpy.mockImplementation(() => {}))
afterEach(() => moveClock())
afterAll(async () => {
  denyPrivateNetwork()
  logSpy.mockRestore()
  await Promise.all([stripe.stop(), paypal.stop(), paddle.stop()])
})

const kinds = {
  stripe: { vendor: stripe, externalIds: { monthlyPriceId: 'price_pro' }, key: 'idempotency-key', unknown: 'sub_none' },
  paypal: { vendor: paypal, externalIds: { monthlyPlanId: 'P-PRO' }, key: 'paypal-request-id', unknown: 'I-NONE' },
  paddle: { vendor: paddle, externalIds: { monthlyPriceId: 'pri_pro' }, key: undefined, unknown: 'sub_none' },
}
const kindNames = Object.keys(kinds) as ProviderKind[]

/** Returns a checkout of a new connection, and how often the vendor was asked for something. */
function createClient(kind: ProviderKind) {
  const { vendor, externalIds } = kinds[kind]
  const connection = createResolvedConnection(vendor.connection())
  const checkout = () => providerOf(kind).createCheckout(connection, createOrder({ externalIds }))
  return { vendor, connection, checkout, asked: () => vendor.seen.length }
}
const refusal = async (work: Promise<unknown>) => {
  const { status, code, more } = (await work.then(
    () => expect.unreachable(),
    (error) => error,
  )) as Problem
  return [status, code, more.headers?.['retry-after']]
}

test.each(kindNames)('%s is not asked again until its Retry-After is over, by none of our calls', async (kind) => {
  const { vendor, connection, checkout, asked } = createClient(kind)
  const start = now()
  moveClock(start)
  vendor.own.nextFailures = [{ status: 429, headers: { 'retry-after': '7' } }]
  expect(await refusal(checkout())).toEqual([503, 'PROVIDER_BUSY', '7'])
  const before = asked()
  moveClock(start + 5_500)
  expect(await refusal(checkout())).toEqual([503, 'PROVIDER_BUSY', '2'])
  const fetching = providerOf(kind).fetchSubscription(connection, kinds[kind].unknown)
  expect(await refusal(fetching)).toEqual([503, 'PROVIDER_BUSY', '2'])
  expect(asked()).toBe(before)
  await createClient(kind).checkout()
  moveClock(start + 7_500)
  await checkout()
})

test.each(kindNames)('%s may be asked again at once after a 429 or 503 without Retry-After', async (kind) => {
  const { vendor, checkout } = createClient(kind)
  for (const status of [429, 503]) {
    vendor.own.nextFailures = [{ status }]
    expect(await refusal(checkout())).toEqual([503, 'PROVIDER_BUSY', '10'])
    await checkout()
  }
})

test.each(kindNames)('a failure of %s has a Retry-After, and a refusal has none', async (kind) => {
  const { vendor, checkout } = createClient(kind)
  await checkout()
  for (const [failure, wait] of [
    [{ status: 500 }, '10'],
    [{ status: 422 }, undefined],
  ] as const) {
    vendor.own.nextFailures = [failure]
    const before = vendor.seen.length
    expect(await refusal(checkout())).toEqual([502, 'PROVIDER_ERROR', wait])
    expect(vendor.seen.length - before).toBe(1)
  }
})

test.each(kindNames)(
  'a call to %s whose answer was lost is repeated once, if that creates nothing twice',
  async (kind) => {
    const { vendor, connection, checkout } = createClient(kind)
    const { key, unknown } = kinds[kind]
    await checkout()
    const before = vendor.seen.length
    vendor.own.nextFailures = ['lost']
    if (key) {
      await checkout()
      const [first, second, ...more] = vendor.seen.slice(before).filter(({ method }) => method === 'POST')
      expect([second?.headers[key], more]).toEqual([first!.headers[key], []])
    } else {
      expect(await refusal(checkout())).toEqual([502, 'PROVIDER_ERROR', '10'])
      expect(vendor.seen.length - before).toBe(1)
    }
    vendor.own.nextFailures = ['lost']
    expect(await providerOf(kind).fetchSubscription(connection, unknown)).toBeUndefined()
    vendor.own.nextFailures = ['lost']
    const row = createSubscriptionRow({ externalSubscriptionId: unknown })
    expect(await providerOf(kind).cancel(connection, row)).toBeTrue()
  },
)

test('a customer is told when to try again, and a cancellation waits for its provider', async () => {
  const at = await createPaymentsFixture(stripe.connection())
  const client = await at.createCustomer()
  const monthly = { planId: at.pro, billingCycle: 'monthly' }
  stripe.own.nextFailures = [{ status: 429, headers: { 'retry-after': '30' } }]
  const refused = await client.post('/checkout', monthly)
  expect([refused.status, refused.body.code, refused.headers.get('retry-after')]).toEqual([503, 'PROVIDER_BUSY', '30'])
  await at.advanceClock(30_000)
  const { subscriptionId } = await expectOk(client.post('/checkout', monthly))
  stripe.own.nextFailures = [{ status: 503, headers: { 'retry-after': '120' } }]
  const cancellation = await client.put(`/subscriptions/${subscriptionId}/cancel`)
  expect([cancellation.status, cancellation.headers.get('retry-after')]).toEqual([503, '120'])
  const before = stripe.seen.length
  for (const ms of [10_000, 60_000]) await at.advanceClock(ms)
  expect([stripe.seen.length - before, await at.status(subscriptionId)]).toEqual([0, 'pending'])
  await at.advanceClock(60_000)
  expect(await at.status(subscriptionId)).toBe('canceled')
})
