import { afterAll, afterEach, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { moveClock } from '../../../src/core/clock'
import { logOutput } from '../../../src/core/log'
import { FORBIDDEN, ID, UNAUTHENTICATED } from '../../expectations'
import { startPaddle } from '../../fakes/vendors/paddle'
import { startPaypal } from '../../fakes/vendors/paypal'
import { STRIPE_KEY, STRIPE_SECRET, startStripe } from '../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { createPaymentsFixture, expectOk, NO_PLAN, NO_SUBSCRIPTION } from '../fixtures'

allowPrivateNetwork()
const stripe = await startStripe()
const at = await createPaymentsFixture(stripe.connection())
const { admin, as } = at
const monthly = { planId: at.pro, billingCycle: 'monthly' }
const sessions = () => stripe.asked('POST', /checkout\/sessions$/)
const countSubscriptions = async (client: { get: typeof admin.get }) =>
  (await expectOk(client.get('/subscriptions'))).length

beforeAll(allowPrivateNetwork)
afterEach(() => {
  stripe.own.nextFailures = []
})
afterAll(async () => {
  denyPrivateNetwork()
  await stripe.stop()
})

describe('POST /checkout', () => {
  test('POST /checkout creates a pending subscription and returns the address to pay at', async () => {
    const client = await at.createCustomer()
    const body = await expectOk(client.post('/checkout', { ...monthly, successUrl: 'https://a.test/thanks' }))
    expect(body).toEqual({
      subscriptionId: ID,
      checkoutUrl: expect.stringMatching(/^https:\/\/checkout\.stripe\.com\/c\/pay\/cs_/),
      clientToken: null,
    })
    const row = await expectOk(client.get(`/subscriptions/${body.subscriptionId}`))
    expect(row).toMatchObject({ status: 'pending', providerKind: 'stripe', providerSourceId: at.source, basePrice: 20 })
    const metadata = { tenant: at.id, subscription: body.subscriptionId, entity: `user:${client.id}` }
    expect(sessions().at(-1)!.body).toMatchObject({
      ...{ mode: 'subscription', client_reference_id: body.subscriptionId, metadata, subscription_data: { metadata } },
      ...{ success_url: 'https://a.test/thanks', cancel_url: `${at.origin}/` },
      line_items: { 0: { price_data: { currency: 'usd', unit_amount: '2000' } } },
      customer_email: expect.stringContaining(at.id),
    })
    expect(await at.events()).toContain('subscription-created')
  })

  test('a pending checkout can be canceled after its connection was removed', async () => {
    const own = await createPaymentsFixture(stripe.connection())
    const { subscriptionId } = await expectOk(
      own.as('user').post('/checkout', { planId: own.pro, billingCycle: 'monthly' }),
    )
    const other = await expectOk(own.admin.post('/integration-sources', stripe.connection()), 201)
    await expectOk(own.admin.put('/payments/configuration', { metadata: { paymentSourceId: other._id } }))
    await expectOk(own.admin.delete(`/integration-sources/${own.source}`))
    expect((await expectOk(own.as('user').put(`/checkout/${subscriptionId}/cancel`))).status).toBe('canceled')
    expect(await own.status(subscriptionId)).toBe('canceled')
  })

  test('a repeated checkout of a pending subscription returns the same session, unless its addresses differ', async () => {
    const client = await at.createCustomer()
    const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', monthly))
    const first = await expectOk(client.post('/checkout', { subscriptionId }))
    expect(await expectOk(client.post('/checkout', { subscriptionId }))).toEqual(first)
    const key = (n: number) => sessions().at(n)!.headers['idempotency-key']
    expect(key(-1)).toBe(key(-2)!)
    expect(await expectOk(client.post('/checkout', { subscriptionId, cancelUrl: 'https://a.test/' }))).not.toEqual(
      first,
    )
    expect(await countSubscriptions(client)).toBe(1)
  })

  test('a repeated checkout gets a new session when the first one was replaced by another or is an hour old', async () => {
    const client = await at.createCustomer()
    const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', monthly))
    const session = async (successUrl: string) => {
      const { checkoutUrl } = await expectOk(client.post('/checkout', { subscriptionId, successUrl }))
      return stripe.sessions.get(checkoutUrl.split('/').at(-1))
    }
    const [first, second] = [await session('https://a.test/'), await session('https://b.test/')]
    await at.advanceClock(0)
    expect([first.status, second.status]).toEqual(['expired', 'open'])
    const again = await session('https://a.test/')
    expect([again.status, again.id === first.id]).toEqual(['open', false])
    await at.advanceClock(3_600_000)
    expect((await session('https://a.test/')).id).not.toBe(again.id)
    moveClock()
  })

  test('a checkout charges the price less its coupon, which replaces an earlier one and is redeemed only by the payment', async () => {
    const client = await at.createCustomer()
    const [half, third] = [await at.createCoupon({}), await at.createCoupon({ discountValue: 33 })]
    const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', { ...monthly, couponCode: half.code }))
    await expectOk(client.post('/checkout', { subscriptionId }))
    await expectOk(client.post('/checkout', { subscriptionId, couponCode: ` ${third.code.toUpperCase()} ` }))
    const amounts = sessions().map(({ body }) => body.line_items[0].price_data.unit_amount)
    expect(amounts.slice(-2)).toEqual(['1000', '1340'])
    const row = await expectOk(client.get(`/subscriptions/${subscriptionId}`))
    expect([row.couponCode, row.finalPrice, row.couponBenefitEndsAt]).toEqual([third.code, 13.4, null])
    // Only the payment redeems the coupon.
    expect((await expectOk(admin.get(`/coupons/${third._id}`))).currentRedemptions).toBe(0)
  })

  test('a free checkout activates the subscription at once without a request to the provider', async () => {
    const client = await at.createCustomer()
    const freeCoupon = await at.createCoupon({ discountValue: 100 })
    const before = stripe.seen.length
    const body = await expectOk(client.post('/checkout', { ...monthly, couponCode: freeCoupon.code }))
    expect(body).toEqual({ subscriptionId: ID, checkoutUrl: null, clientToken: null })
    const mine = await expectOk(client.get('/subscriptions/me'))
    expect(mine).toMatchObject({ _id: body.subscriptionId, status: 'active', finalPrice: 0, providerKind: null })
    expect(mine.limits).toEqual({ projects: 2 })
    expect(mine.couponBenefitEndsAt).toBeNull()
    expect((await expectOk(admin.get(`/coupons/${freeCoupon._id}`))).currentRedemptions).toBe(1)
    const withoutProvider = await createPaymentsFixture()
    await expectOk(
      withoutProvider.as('user').post('/checkout', { planId: withoutProvider.free, billingCycle: 'yearly' }),
    )
    expect((await expectOk(withoutProvider.as('user').get('/subscriptions/me'))).billingCycle).toBe('yearly')
    expect(stripe.seen.length).toBe(before)
  })

  test('a checkout of a dynamic plan charges the amount set by an admin, or gets 400 DYNAMIC_AMOUNT_NOT_SET', async () => {
    const client = await at.createCustomer()
    const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', { ...monthly, planId: at.dynamic }))
    expect(statusAndCode(await client.post('/checkout', { subscriptionId }))).toEqual([400, 'DYNAMIC_AMOUNT_NOT_SET'])
    await expectOk(admin.put(`/subscriptions/${subscriptionId}/dynamic-amount`, { amount: 12.34 }))
    await expectOk(client.post('/checkout', { subscriptionId }))
    expect(sessions().at(-1)!.body.line_items[0].price_data.unit_amount).toBe('1234')
    const entity = { billableEntityType: 'user', billableEntityId: client.id }
    const order = { ...monthly, planId: at.dynamic, ...entity, amount: 99 }
    const { subscriptionId: second } = await expectOk(admin.post('/checkout', order))
    expect(await expectOk(client.get(`/subscriptions/${second}`))).toMatchObject({
      status: 'pending',
      dynamicAmount: 99,
    })
    expect(sessions().at(-1)!.body).toMatchObject({ customer_email: expect.stringContaining('customer') })
  })

  test('an embedded checkout returns a client token instead of an address', async () => {
    const own = await createPaymentsFixture({
      ...stripe.connection(),
      metadata: { apiUrl: stripe.url, checkoutMode: 'embedded' },
    })
    const body = await expectOk(own.as('user').post('/checkout', { planId: own.pro, billingCycle: 'monthly' }))
    expect(body).toEqual({ subscriptionId: ID, checkoutUrl: null, clientToken: expect.stringContaining('_secret_') })
  })

  test('a second checkout gets 409 ACTIVE_SUBSCRIPTION_EXISTS, and with reset it cancels the active subscription', async () => {
    const client = await at.createCustomer()
    const { subscriptionId: first } = await expectOk(
      client.post('/checkout', { planId: at.free, billingCycle: 'monthly' }),
    )
    const again = await client.post('/checkout', monthly)
    expect(statusAndCode(again)).toEqual([409, 'ACTIVE_SUBSCRIPTION_EXISTS'])
    expect(again.body.details).toEqual({ existingSubscriptionId: first })
    // A rejected checkout cancels nothing.
    const wrong = { ...monthly, couponCode: 'nothing', reset: true }
    expect(statusAndCode(await client.post('/checkout', wrong))).toEqual([400, 'COUPON_NOT_FOUND'])
    expect(await at.status(first)).toBe('active')
    const { subscriptionId } = await expectOk(client.post('/checkout', { ...monthly, reset: true }))
    expect([await at.status(first), await at.status(subscriptionId)]).toEqual(['canceled', 'pending'])
  })
})

describe('rejected checkouts', () => {
  const refused = async (body: object, client: { post: typeof admin.post } = as('user')) =>
    statusAndCode(await client.post('/checkout', body))

  test('a checkout of an unknown, inactive or foreign plan or subscription gets 400, 403 or 404, and 401 without credentials', async () => {
    const old = await at.createPlan({ name: 'Old', monthlyPrice: 1, yearlyPrice: 1 })
    const waiting = await at.createPending('user', { planId: old._id })
    await expectOk(admin.delete(`/plans/${old._id}`))
    const foreign = await createPaymentsFixture()
    const foreignSubscription = await foreign.createPending()
    expect(await refused({})).toEqual([400, 'INVALID_INPUT'])
    expect(await refused({ planId: at.pro })).toEqual([400, 'INVALID_INPUT'])
    expect(await refused({ ...monthly, billingCycle: 'weekly' })).toEqual([400, 'INVALID_INPUT'])
    for (const planId of ['x', foreign.pro]) expect(await refused({ ...monthly, planId })).toEqual(NO_PLAN)
    expect(await refused({ ...monthly, planId: old._id })).toEqual([400, 'PLAN_NOT_ACTIVE'])
    expect(await refused({ subscriptionId: waiting })).toEqual([400, 'PLAN_NOT_ACTIVE'])
    for (const subscriptionId of ['x', foreignSubscription])
      expect(await refused({ subscriptionId })).toEqual(NO_SUBSCRIPTION)
    expect(await refused({ subscriptionId: waiting }, as('other'))).toEqual(FORBIDDEN)
    expect(await refused(monthly, at.anonymous)).toEqual(UNAUTHENTICATED)
    const unknownUser = { ...monthly, billableEntityType: 'user', billableEntityId: 'nobody' }
    expect(await refused(unknownUser, admin)).toEqual([404, 'USER_NOT_FOUND'])
  })

  test('a checkout of a dynamic plan without a subscription or a valid amount of an admin gets 400', async () => {
    const dynamic = { ...monthly, planId: at.dynamic }
    expect(await refused(dynamic)).toEqual([400, 'DYNAMIC_PLAN_REQUIRES_SUBSCRIPTION'])
    // Only admins may set an amount.
    expect(await refused({ ...dynamic, amount: 5 })).toEqual([400, 'DYNAMIC_PLAN_REQUIRES_SUBSCRIPTION'])
    expect(await refused(dynamic, admin)).toEqual([400, 'DYNAMIC_PLAN_REQUIRES_SUBSCRIPTION'])
    for (const amount of [0, -5, '10', 1e21, 0.001])
      expect(await refused({ ...dynamic, amount }, admin), String(amount)).toEqual([400, 'INVALID_AMOUNT'])
  })

  test('a checkout with an invalid coupon or redirect URL gets 400 and creates no subscription', async () => {
    const client = await at.createCustomer()
    const soon = new Date(Date.now() + 3_600_000).toISOString()
    const cases: [object, string][] = [
      [{ isActive: false }, 'COUPON_NOT_FOUND'],
      [{ validFrom: soon }, 'COUPON_NOT_YET_VALID'],
      [{ validUntil: '2020-01-01' }, 'COUPON_EXPIRED'],
      [{ maxRedemptions: 0 }, 'COUPON_MAX_REDEMPTIONS'],
      [{ applicablePlanIds: [at.free] }, 'COUPON_NOT_APPLICABLE'],
      [{ discountType: 'fixed', currency: 'JPY' }, 'COUPON_NOT_APPLICABLE'],
    ]
    for (const [body, code] of cases) {
      const { code: couponCode } = await at.createCoupon(body)
      expect(await refused({ ...monthly, couponCode }, client)).toEqual([400, code])
    }
    for (const url of ['/thanks', 'javascript:alert(1)', 'https://', 'ftp://a.test/'])
      for (const name of ['successUrl', 'cancelUrl'])
        expect(await refused({ ...monthly, [name]: url }, client), url).toEqual([400, 'INVALID_REDIRECT_URL'])
    expect(await countSubscriptions(client)).toBe(0)
  })

  test('a checkout whose attached coupon was used up meanwhile gets 400 COUPON_MAX_REDEMPTIONS until an admin removes it', async () => {
    const client = await at.createCustomer()
    const { _id, code } = await at.createCoupon({})
    const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', { ...monthly, couponCode: code }))
    await expectOk(admin.put(`/coupons/${_id}`, { maxRedemptions: 0 }))
    expect(await refused({ subscriptionId }, client)).toEqual([400, 'COUPON_MAX_REDEMPTIONS'])
    await expectOk(admin.put(`/subscriptions/${subscriptionId}/coupon`, { couponCode: null }))
    await expectOk(client.post('/checkout', { subscriptionId }))
  })

  test('a checkout without a payment connection gets 500 PAYMENTS_NOT_CONFIGURED, whether payments are enabled or not', async () => {
    const own = await createPaymentsFixture()
    const checkOut = async () => {
      const sent = await own.as('user').post('/checkout', { planId: own.pro, billingCycle: 'monthly' })
      expect(await countSubscriptions(own.as('user'))).toBe(0)
      return statusAndCode(sent)
    }
    const set = (metadata: object) => expectOk(own.admin.put('/payments/configuration', { metadata }))
    const NOT_CONFIGURED = [500, 'PAYMENTS_NOT_CONFIGURED']
    expect(await checkOut()).toEqual(NOT_CONFIGURED)
    await set({ isEnabled: true })
    expect(await checkOut()).toEqual(NOT_CONFIGURED)
    await set({ isEnabled: false })
    expect(await checkOut()).toEqual(NOT_CONFIGURED)
  })

  test('a plan without a price id gets 400 MISSING_EXTERNAL_PRICE_ID in a checkout, with Stripe only if requireExternalPrice is set', async () => {
    const [paypal, paddle] = [await startPaypal(), await startPaddle()]
    const strict = stripe.connection()
    const connections = [
      ...[paypal.connection(), paddle.connection()],
      { ...strict, metadata: { ...strict.metadata, requireExternalPrice: true } },
    ]
    for (const connection of connections) {
      const own = await createPaymentsFixture(connection)
      expect(await refused({ planId: own.pro, billingCycle: 'monthly' }, own.as('user'))).toEqual([
        400,
        'MISSING_EXTERNAL_PRICE_ID',
      ])
      expect(await countSubscriptions(own.as('user'))).toBe(0)
    }
    expect([paypal.seen, paddle.seen]).toEqual([[], []])
    await Promise.all([paypal.stop(), paddle.stop()])
  })
})

describe('a failing provider', () => {
  const PROVIDER_ERROR = [502, 'PROVIDER_ERROR']

  test('a failed checkout gets 502 PROVIDER_ERROR, leaves no subscription and no redemption, and leaks no secret', async () => {
    const lines: string[] = []
    const logSpy = spyOn(logOutput, 'write').mockImplementation((line) => void lines.push(line))
    const client = await at.createCustomer()
    const { _id, code } = await at.createCoupon({ maxRedemptions: 1 })
    for (const failure of ['down', { status: 500 }, { status: 401 }] as const) {
      // The provider client retries that often at most.
      stripe.own.nextFailures = Array(6).fill(failure)
      const sent = await client.post('/checkout', { ...monthly, couponCode: code })
      expect(statusAndCode(sent)).toEqual(PROVIDER_ERROR)
      expect(JSON.stringify(sent.body)).not.toMatch(new RegExp(`${STRIPE_KEY}|${STRIPE_SECRET}|127\\.0\\.0\\.1`))
      expect(await countSubscriptions(client)).toBe(0)
    }
    logSpy.mockRestore()
    expect(lines).not.toBeEmpty()
    expect(lines.join()).not.toMatch(new RegExp(`${STRIPE_KEY}|${STRIPE_SECRET}`))
    expect((await expectOk(admin.get(`/coupons/${_id}`))).currentRedemptions).toBe(0)
    const [failure] = await expectOk(admin.get('/events?source=payments&eventName=checkout-failed'))
    expect([failure.user, failure.metadata]).toEqual([
      client.id,
      expect.objectContaining({ planId: at.pro, providerKind: 'stripe', code: 'PROVIDER_ERROR' }),
    ])
    stripe.own.nextFailures = []
    await expectOk(client.post('/checkout', { ...monthly, couponCode: code }))
  })

  test('a failed checkout leaves its pending subscription unchanged, and the next try has another idempotency key', async () => {
    const client = await at.createCustomer()
    const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', monthly))
    const { code } = await at.createCoupon({})
    const before = await expectOk(client.get(`/subscriptions/${subscriptionId}`))
    stripe.own.nextFailures = Array(6).fill({ status: 500 })
    expect(statusAndCode(await client.post('/checkout', { subscriptionId, couponCode: code }))).toEqual(PROVIDER_ERROR)
    const key = sessions().at(-1)!.headers['idempotency-key']
    expect(await expectOk(client.get(`/subscriptions/${subscriptionId}`))).toEqual(before)
    stripe.own.nextFailures = []
    await expectOk(client.post('/checkout', { subscriptionId, couponCode: code }))
    expect(sessions().at(-1)!.headers['idempotency-key']).not.toBe(key!)
  })

  test('a cancellation that the provider does not answer gets 502 PROVIDER_ERROR, and a retry cancels the subscription', async () => {
    const client = await at.createCustomer()
    const { subscriptionId } = await expectOk(client.post('/checkout', monthly))
    const external = stripe.pay([...stripe.sessions.keys()].at(-1)!)!
    await at.applyTrigger(subscriptionId, 'activated', {
      occurredAt: 1,
      externalSubscriptionId: external,
      providerKind: 'stripe',
    })
    stripe.own.nextFailures = Array(6).fill('down')
    expect(statusAndCode(await client.put(`/subscriptions/${subscriptionId}/cancel`))).toEqual(PROVIDER_ERROR)
    const row = await expectOk(client.get('/subscriptions/me'))
    expect([row.status, typeof row.cancelRequested]).toEqual(['active', 'string'])
    stripe.own.nextFailures = []
    expect(await expectOk(client.put(`/checkout/${subscriptionId}/cancel`))).toMatchObject({
      ...{ status: 'canceled', cancelRequested: null },
    })
    expect(stripe.subscriptions.get(external).status).toBe('canceled')
  })

  test('a failed cancellation of a pending subscription is repeated by a job', async () => {
    const client = await at.createCustomer()
    const { subscriptionId } = await expectOk(client.post('/checkout', monthly))
    stripe.own.nextFailures = Array(6).fill('down')
    expect(statusAndCode(await client.put(`/subscriptions/${subscriptionId}/cancel`))).toEqual(PROVIDER_ERROR)
    stripe.own.nextFailures = []
    expect(await at.status(subscriptionId)).toBe('pending')
    await at.advanceClock(10_000)
    expect(await at.status(subscriptionId)).toBe('canceled')
    expect([...stripe.sessions.values()].at(-1).status).toBe('expired')
  })
})

test('a connection that the payments configuration or an active subscription uses cannot be deleted (INTEGRATION_SOURCE_IN_USE)', async () => {
  const own = await createPaymentsFixture(stripe.connection())
  const remove = () => own.admin.delete(`/integration-sources/${own.source}`)
  expect((await remove()).body).toMatchObject({
    ...{ code: 'INTEGRATION_SOURCE_IN_USE', details: { usedBy: ['the payments configuration'] } },
  })
  const { subscriptionId } = await expectOk(
    own.as('user').post('/checkout', { planId: own.pro, billingCycle: 'monthly' }),
  )
  await own.applyTrigger(subscriptionId, 'activated', { occurredAt: 1, externalSubscriptionId: 'sub_1' })
  await expectOk(own.admin.put('/payments/configuration', { metadata: { paymentSourceId: null } }))
  expect((await remove()).body.details).toEqual({ usedBy: ['1 active subscription'] })
  await own.applyTrigger(subscriptionId, 'canceled', { occurredAt: 2 })
  await expectOk(remove())
})

test('the subscriptions of a deleted user or workspace are canceled, here and at the provider', async () => {
  const client = await at.createCustomer()
  await expectOk(client.post('/checkout', monthly))
  const waiting = await expectOk(client.post('/subscriptions', monthly))
  const session = [...stripe.sessions.values()].at(-1)
  await expectOk(admin.delete(`/users/${client.id}`))
  expect(await at.status(waiting._id)).toBe('canceled')
  await at.advanceClock(0)
  expect(session.status).toBe('expired')
  expect(await expectOk(admin.get(`/subscriptions?billableEntityId=${client.id}&status=pending`))).toEqual([])

  const owner = await at.createCustomer()
  const { _id: workspace } = await expectOk(owner.post('/workspaces', { name: 'Office' }), 201)
  await expectOk(owner.post(`/workspaces/${workspace}/activate`))
  const { subscriptionId } = await expectOk(owner.post('/checkout', monthly))
  const external = stripe.pay([...stripe.sessions.keys()].at(-1)!)!
  await at.applyTrigger(subscriptionId, 'activated', { occurredAt: 1, externalSubscriptionId: external })
  await expectOk(owner.delete(`/workspaces/${workspace}`))
  await at.advanceClock(0)
  expect([await at.status(subscriptionId), stripe.subscriptions.get(external).status]).toEqual(['canceled', 'canceled'])
})

test('subscriptions, invoices, coupons and plans of one tenant are invisible to every other tenant', async () => {
  const otherTenant = await createTestTenant()
  const subscriptionId = await at.createPending()
  for (const path of ['/subscriptions', '/invoices', '/coupons', '/plans'])
    expect(await expectOk(otherTenant.as('admin').get(path)), path).toEqual([])
  expect(statusAndCode(await otherTenant.as('admin').post('/checkout', { subscriptionId }))).toEqual(NO_SUBSCRIPTION)
})
