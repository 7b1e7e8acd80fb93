import { expect, test } from 'bun:test'
import { DAY_MS, moveClock, now } from '../../../src/core/clock'
import { subscriptions } from '../../../src/payments/tables'
import { expectToTakeTurns } from '../../costly-reads'
import { createPaymentsFixture, expectOk } from '../fixtures'

test('admins get the number of subscriptions of each status, and the monthly revenue by currency', async () => {
  const at = await createPaymentsFixture()
  const { admin } = at
  const euro = (await at.createPlan({ name: 'Euro', monthlyPrice: 9.99, yearlyPrice: 100, currency: 'EUR' }))._id
  const statistics = () => expectOk(admin.get('/subscriptions/statistics'))
  expect(await statistics()).toEqual({
    countByStatus: { pending: 0, active: 0, trialing: 0, past_due: 0, canceled: 0, expired: 0 },
    monthlyRevenue: [],
  })

  let counter = 0
  const subscribe = async (body: object, external?: string) => {
    const customer = await at.createCustomer()
    const billable = { billableEntityType: 'user', billableEntityId: customer.id }
    const id = await at.createPending('admin', { ...billable, ...body })
    const externalSubscriptionId = external ?? `sub_${counter++}`
    await at.applyTrigger(id, 'activated', { occurredAt: now(), externalSubscriptionId })
    return id
  }
  const { code } = await at.createCoupon({ benefitDurationUnit: 'days', benefitDurationValue: 10 })
  await subscribe({})
  await subscribe({ couponCode: code })
  await subscribe({ billingCycle: 'yearly' })
  await subscribe({ planId: euro, billingCycle: 'yearly' })
  const late = await subscribe({ planId: euro })
  await at.applyTrigger(late, 'payment failed', { occurredAt: now() + 1 })
  const trial = await at.createPending('admin', {
    ...{ billableEntityType: 'user', billableEntityId: (await at.createCustomer()).id },
  })
  await at.applyTrigger(trial, 'trial', { occurredAt: now(), externalSubscriptionId: 'sub_trial' })
  const free = await at.createCustomer()
  await expectOk(free.post('/checkout', { planId: at.free, billingCycle: 'monthly' }))

  // 20 + 10 + 200 / 12, and 100 / 12 + 9.99.
  expect(await statistics()).toEqual({
    countByStatus: { pending: 0, active: 5, trialing: 1, past_due: 1, canceled: 0, expired: 0 },
    monthlyRevenue: [
      { currency: 'USD', amount: 46.67, subscriptions: 3 },
      { currency: 'EUR', amount: 18.32, subscriptions: 2 },
    ],
  })
  moveClock(now() + 11 * DAY_MS)
  expect((await statistics()).monthlyRevenue[0]).toEqual({ currency: 'USD', amount: 56.67, subscriptions: 3 })
  moveClock()

  expect((await admin.get(`/subscriptions?planId=${euro}`)).body).toHaveLength(2)
  expect((await at.as('user').get('/subscriptions/statistics')).status).toBe(403)
})

test('the numbers of many subscriptions are read in batches that take turns with other costly work of the tenant', async () => {
  const at = await createPaymentsFixture()
  const billable = { billableEntityType: 'user', billableEntityId: (await at.createCustomer()).id }
  await at.createPending('admin', billable)
  const [row] = await at.tenant.db.select().from(subscriptions)
  const copy = (n: number) => ({ ...row!, _id: `${n}`, billableEntityId: `${n}`, status: 'canceled' as const })
  const copies = Array.from({ length: 600 }, (_, n) => copy(n))
  await at.tenant.write((tx) => tx.insert(subscriptions).values(copies))
  const { body } = await expectToTakeTurns(at.id, () => at.admin.get('/subscriptions/statistics'))
  expect(body.countByStatus).toMatchObject({ pending: 1, canceled: 600 })
})
