import { afterEach, describe, expect, test } from 'bun:test'
import { moveClock } from '../../../src/core/clock'
import { configurations } from '../../../src/platform/settings/tables'
import { invalidate } from '../../../src/tenancy/cache'
import { FORBIDDEN, ID, TIME, UNAUTHENTICATED } from '../../expectations'
import { type ApiClient, createTestTenant, statusAndCode } from '../../test-tenant'
import { createPaymentsFixture, expectOk } from '../fixtures'

const at = await createPaymentsFixture()
const { admin, as, anonymous } = at
afterEach(() => moveClock())

const INVALID = [400, 'INVALID_COUPON_DATA']
const COUPON_NOT_FOUND = [404, 'COUPON_NOT_FOUND']
const valid = { code: 'valid', discountType: 'percentage', discountValue: 10 }
const fromNow = (ms: number) => new Date(Date.now() + ms).toISOString()
const HOUR = 3_600_000

describe('coupons', () => {
  test('a coupon is returned whole to admins, and without its redemption counts to others who validate its code', async () => {
    const body = await at.createCoupon({ code: '  Welcome10 ', discountValue: 12.5 })
    const coupon = {
      ...{ _id: ID, code: 'Welcome10', discountType: 'percentage', discountValue: 12.5, currency: null },
      ...{ maxRedemptions: null, currentRedemptions: 0, validFrom: null, validUntil: null, isActive: true },
      ...{ benefitDurationUnit: null, benefitDurationValue: null, applicablePlanIds: [], created: TIME, updated: TIME },
    }
    expect(body).toEqual(coupon)
    expect(await expectOk(admin.get(`/coupons/${body._id}`))).toEqual(coupon)
    expect(await expectOk(admin.get('/coupons'))).toContainEqual(coupon)
    const { maxRedemptions: _, currentRedemptions: __, ...publicCoupon } = coupon
    for (const client of [anonymous, as('user')])
      expect(await expectOk(client.post('/coupons/validate', { code: ' wELCOME10' }))).toEqual(publicCoupon)
    expect(await expectOk(admin.post('/coupons/validate', { code: 'WELCOME10' }))).toEqual(coupon)
  })

  test('a fixed coupon is rejected with INVALID_COUPON_DATA that names the stored default currency when this does not exist', async () => {
    const own = await createTestTenant()
    await expectOk(
      own.as('admin').put('/configurations/payments-configuration', { metadata: { defaultCurrency: 'EUR' } }),
    )
    // An earlier release stored the currency without this check.
    await own.tenant.write((tx) => tx.update(configurations).set({ metadata: { defaultCurrency: 'XYZ' } }))
    invalidate(own.tenant, 'configurations')
    const { body } = await own.as('admin').post('/coupons', { ...valid, discountType: 'fixed' })
    expect([body.code, body.message]).toEqual([
      'INVALID_COUPON_DATA',
      '"XYZ" is not an ISO 4217 currency such as USD or EUR.',
    ])
  })

  test('a fixed coupon defaults to the configured currency, and PUT accepts the body that POST has returned', async () => {
    const body = await at.createCoupon({
      ...{
        discountType: 'fixed',
        discountValue: 5.26,
        maxRedemptions: 3,
        validFrom: '2026-01-01',
        validUntil: fromNow(HOUR),
      },
      ...{ benefitDurationUnit: 'months', benefitDurationValue: 3, applicablePlanIds: [at.pro] },
    })
    expect([body.currency, body.discountValue, body.validFrom]).toEqual(['USD', 5.26, '2026-01-01T00:00:00.000Z'])
    const again = await expectOk(admin.put(`/coupons/${body._id}`, { ...body, currentRedemptions: 99 }))
    expect(again).toEqual({ ...body, updated: TIME })
    const yen = await at.createCoupon({ discountType: 'fixed', discountValue: 500, currency: 'jpy' })
    expect([yen.currency, yen.discountValue]).toEqual(['JPY', 500])
  })

  test('POST and PUT /coupons reject invalid fields with 400 INVALID_COUPON_DATA', async () => {
    const bad: object[] = [
      ...[{}, { code: 'x' }, { ...valid, code: '' }, { ...valid, code: '   ' }, { ...valid, code: 5 }],
      ...[
        { ...valid, discountType: 'gift' },
        { ...valid, discountValue: undefined },
        { ...valid, discountValue: null },
      ],
      ...[-1, 100.01, '10', 1e21, [10], true].map((discountValue) => ({ ...valid, discountValue })),
      ...[-1, 1e21, '10'].map((discountValue) => ({ ...valid, discountType: 'fixed', discountValue })),
      ...[
        { ...valid, discountType: 'fixed', currency: 'XYZ' },
        { ...valid, maxRedemptions: -1 },
      ],
      ...[
        { ...valid, maxRedemptions: 1.5 },
        { ...valid, validFrom: 'tomorrow' },
        { ...valid, isActive: 'false' },
      ],
      ...[
        { ...valid, validFrom: '2026-02-01', validUntil: '2026-01-01' },
        { ...valid, applicablePlanIds: 'x' },
      ],
      ...[
        { ...valid, benefitDurationUnit: 'months' },
        { ...valid, benefitDurationValue: 3 },
      ],
      ...[
        { ...valid, benefitDurationUnit: 'years', benefitDurationValue: 1 },
        { ...valid, benefitDurationUnit: 'days', benefitDurationValue: 0 },
        { ...valid, benefitDurationUnit: 'days', benefitDurationValue: 1.5 },
      ],
    ]
    const { _id } = await at.createCoupon({})
    for (const body of bad) {
      expect(statusAndCode(await admin.post('/coupons', body)), JSON.stringify(body)).toEqual(INVALID)
      if (Object.keys(body).length > 2)
        expect(statusAndCode(await admin.put(`/coupons/${_id}`, body)), JSON.stringify(body)).toEqual(
          'discountValue' in body && body.discountValue === undefined ? [200, 'valid'] : INVALID,
        )
    }
    const { body } = await admin.post('/coupons', { ...valid, discountValue: -1 })
    expect(body.details[0].path).toBe('/discountValue')
    expect(statusAndCode(await admin.post('/coupons', [valid]))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a coupon code is unique regardless of case and spaces, or gets 400 COUPON_CODE_EXISTS', async () => {
    await at.createCoupon({ code: 'Straße' })
    expect(statusAndCode(await admin.post('/coupons', { ...valid, code: ' STRAßE ' }))).toEqual([
      400,
      'COUPON_CODE_EXISTS',
    ])
    const { _id } = await at.createCoupon({})
    expect(statusAndCode(await admin.put(`/coupons/${_id}`, { code: 'straße' }))).toEqual([400, 'COUPON_CODE_EXISTS'])
    expect((await expectOk(admin.put(`/coupons/${_id}`, { code: 'Other' }))).code).toBe('Other')
    const results = await Promise.all([1, 2, 3].map(() => admin.post('/coupons', { ...valid, code: 'at once' })))
    expect(results.map(({ status }) => status).sort()).toEqual([201, 400, 400])
  })

  test('POST /coupons/validate reports the first failed check in the documented order', async () => {
    const validate = async (body: object, planId: string | undefined = at.pro) => {
      const { code } = await at.createCoupon(body)
      return statusAndCode(await anonymous.post('/coupons/validate', { code, planId }))
    }
    // Each coupon also has all the flaws that are checked later.
    const flaws = { maxRedemptions: 0, applicablePlanIds: ['x'] }
    expect(await validate({ isActive: false, validFrom: fromNow(HOUR), ...flaws })).toEqual([400, 'COUPON_NOT_FOUND'])
    expect(await validate({ validFrom: fromNow(HOUR), ...flaws })).toEqual([400, 'COUPON_NOT_YET_VALID'])
    expect(await validate({ validUntil: fromNow(-HOUR), ...flaws })).toEqual([400, 'COUPON_EXPIRED'])
    expect(await validate(flaws)).toEqual([400, 'COUPON_MAX_REDEMPTIONS'])
    expect(await validate({ applicablePlanIds: ['x'] })).toEqual([400, 'COUPON_NOT_APPLICABLE'])
    const euros = { discountType: 'fixed', discountValue: 5, currency: 'EUR' }
    expect(await validate(euros)).toEqual([400, 'COUPON_NOT_APPLICABLE'])
    // Without a plan, restrictions to plans and currencies are not checked.
    for (const body of [{ applicablePlanIds: ['x'] }, euros]) {
      const { code } = await at.createCoupon(body)
      await expectOk(anonymous.post('/coupons/validate', { code }))
    }
    const withInvalidKey = anonymous.with({ 'x-api-key': 'atl_of_nobody' })
    expect(statusAndCode(await withInvalidKey.post('/coupons/validate', { code: 'nobody' }))).toEqual([
      401,
      'UNAUTHENTICATED',
    ])
    expect(statusAndCode(await anonymous.post('/coupons/validate', { code: 'nobody' }))).toEqual([
      400,
      'COUPON_NOT_FOUND',
    ])
    for (const body of [{}, { code: '' }, { code: 5 }])
      expect(statusAndCode(await anonymous.post('/coupons/validate', body))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a coupon is valid from validFrom until validUntil', async () => {
    const { code } = await at.createCoupon({ validFrom: fromNow(HOUR), validUntil: fromNow(2 * HOUR) })
    const validate = async () => statusAndCode(await as('user').post('/coupons/validate', { code }))
    expect(await validate()).toEqual([400, 'COUPON_NOT_YET_VALID'])
    moveClock(Date.now() + 1.5 * HOUR)
    expect(await validate()).toEqual([200, code])
    moveClock(Date.now() + 2 * HOUR)
    expect(await validate()).toEqual([400, 'COUPON_EXPIRED'])
  })

  test('coupon guesses by subscriptions, checkouts and validation share a limit of 60 per minute, and more get 429 RATE_LIMITED', async () => {
    const own = await createPaymentsFixture()
    const client = await own.createCustomer()
    const subscribe = (by: ApiClient, couponCode?: string) =>
      by.post('/subscriptions', { planId: own.pro, billingCycle: 'monthly', ...(couponCode && { couponCode }) })
    const ways = [
      (n: number) => subscribe(client, `guess${n}`),
      (n: number) => client.post('/checkout', { planId: own.pro, billingCycle: 'monthly', couponCode: `guess${n}` }),
      (n: number) => client.post('/coupons/validate', { code: `guess${n}` }),
    ]
    for (let n = 0; n < 60; n++) expect((await ways[n % 3]!(n)).status).toBe(400)
    for (const way of ways) expect(statusAndCode(await way(61))).toEqual([429, 'RATE_LIMITED'])
    expect((await subscribe(client)).status).toBe(200)
    const otherCustomer = await own.createCustomer()
    expect(statusAndCode(await subscribe(otherCustomer, 'guess'))).toEqual([400, 'COUPON_NOT_FOUND'])
    moveClock(Date.now() + 61_000)
    expect(statusAndCode(await ways[0]!(62))).toEqual([400, 'COUPON_NOT_FOUND'])
  })

  test('POST /coupons/validate answers 429 after 60 guesses in a minute, except to admins', async () => {
    const { as, anonymous } = await createTestTenant()
    for (const client of [anonymous, as('user')]) {
      const statuses = []
      for (let n = 0; n < 70; n++) statuses.push((await client.post('/coupons/validate', { code: `guess${n}` })).status)
      expect(statuses).toEqual([...Array(60).fill(400), ...Array(10).fill(429)])
    }
    expect((await as('other').post('/coupons/validate', { code: 'guess' })).status).toBe(400)
    for (let n = 0; n < 70; n++)
      expect((await as('admin').post('/coupons/validate', { code: 'guess' })).status).toBe(400)
  })

  test('coupon routes answer 403 to users, 401 without credentials and 404 COUPON_NOT_FOUND for unknown or foreign coupons', async () => {
    const { _id, code } = await at.createCoupon({})
    const path = `/coupons/${_id}`
    for (const client of [as('user'), as('editor')])
      for (const answer of [
        client.get('/coupons'),
        client.get(path),
        client.post('/coupons', valid),
        client.delete(path),
      ])
        expect(statusAndCode(await answer)).toEqual(FORBIDDEN)
    for (const answer of [anonymous.get('/coupons'), anonymous.get(path), anonymous.put(path, valid)])
      expect(statusAndCode(await answer)).toEqual(UNAUTHENTICATED)
    for (const id of ['x', '%00', Bun.randomUUIDv7()])
      for (const answer of [
        admin.get(`/coupons/${id}`),
        admin.put(`/coupons/${id}`, {}),
        admin.delete(`/coupons/${id}`),
      ])
        expect(statusAndCode(await answer)).toEqual(COUPON_NOT_FOUND)
    const otherTenant = await createTestTenant()
    expect(statusAndCode(await otherTenant.as('admin').get(path))).toEqual(COUPON_NOT_FOUND)
    expect(statusAndCode(await otherTenant.anonymous.post('/coupons/validate', { code }))).toEqual([
      400,
      'COUPON_NOT_FOUND',
    ])
    expect((await expectOk(admin.delete(path))).isActive).toBe(false)
    expect((await expectOk(admin.get('/coupons?isActive=false'))).map((one: { _id: string }) => one._id)).toContain(_id)
    expect((await expectOk(admin.get('/coupons?isActive=true'))).map((one: { _id: string }) => one._id)).not.toContain(
      _id,
    )
  })
})

test('PUT /subscriptions/:id/coupon rejects a coupon on an ended subscription with 409 SUBSCRIPTION_ENDED', async () => {
  const { code } = await at.createCoupon({})
  const id = await at.createPending()
  await expectOk(admin.put(`/subscriptions/${id}/cancel`))
  const path = `/subscriptions/${id}/coupon`
  expect(statusAndCode(await admin.put(path, { couponCode: code }))).toEqual([409, 'SUBSCRIPTION_ENDED'])
  expect(statusAndCode(await admin.put(path, { couponCode: 'nonsense' }))).toEqual([409, 'SUBSCRIPTION_ENDED'])
  expect((await expectOk(admin.put(path, { couponCode: null }))).status).toBe('canceled')
})
