import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { config } from '../../../src/config'
import { moveClock, now, toIsoString } from '../../../src/core/clock'
import { logOutput } from '../../../src/core/log'
import { subscriptions } from '../../../src/payments/tables'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createPaymentsFixture, expectOk, type PaymentsFixture } from '../fixtures'
import { type World, worlds } from '../simulator/provider-worlds'
import { deliver } from '../webhooks/webhook-fixtures'

setDefaultTimeout(60_000)
allowPrivateNetwork()
config.ATOLL_RATE_LIMITS = 'off'
const HOUR = 3_600_000
const DAY = 24 * HOUR
const logSpy = spyOn(logOutput, 'write')
beforeAll(() => void logSpy.mockImplementation(() => {}))
afterEach(() => {
  moveClock()
  for (const { world } of shops) world.own.failWhen = () => undefined
})
afterAll(async () => {
  for (const { world } of shops) await world.stop()
  config.ATOLL_RATE_LIMITS = 'on'
  denyPrivateNetwork()
  logSpy.mockRestore()
})

/** Opens a shop at a provider, with a plan that can be bought there. */
async function openShop(world: World) {
  const at = await createPaymentsFixture(world.connection())
  const body = { name: 'Plan', monthlyPrice: 20, yearlyPrice: 200, externalIds: { [world.kind]: world.externalIds } }
  return { kind: world.kind, world, at, plan: (await at.createPlan(body))._id as string }
}
const shops = await Promise.all(Object.values(worlds).map(async (start) => openShop(await start())))
type Shop = (typeof shops)[number]
type Customer = Awaited<ReturnType<PaymentsFixture['createCustomer']>>

async function deliverAll({ at, world }: Shop) {
  for (const event of world.events.splice(0)) await deliver(at, world.kind, world.signEvent(event))
}

async function startCheckout({ plan, world }: Shop, client: Customer) {
  const answer = await expectOk(client.post('/checkout', { planId: plan, billingCycle: 'monthly' }))
  return { id: answer.subscriptionId as string, checkout: world.checkoutIn(answer) }
}

/** Buys the plan, for a new customer unless one is given. */
async function buy(shop: Shop, client?: Customer) {
  const customer = client ?? (await shop.at.createCustomer())
  const { id, checkout } = await startCheckout(shop, customer)
  shop.world.pay(checkout, false)
  const external = shop.world.truths().at(-1)!.id
  await deliverAll(shop)
  const read = async () => expectOk(shop.at.admin.get(`/subscriptions/${id}`))
  const truth = () => shop.world.truths().find((one) => one.id === external)!
  return { id, external, customer, read, truth }
}

/** Moves the clock in steps and runs the jobs in between. */
async function pass({ at }: Shop, ms: number, step = 40 * HOUR) {
  for (let left = ms; left > 0; left -= step) await at.advanceClock(Math.min(step, left))
}

const eventsOf = async ({ at }: Shop, eventName: string, id: string) =>
  ((await expectOk(at.admin.get(`/events?eventName=${eventName}&limit=1000`))) as { metadata: Any }[])
    .map(({ metadata }) => metadata)
    .filter(({ subscriptionId }) => subscriptionId === id)

// biome-ignore lint/suspicious/noExplicitAny: metadata of events and objects of vendors
type Any = any

describe.each(shops)('a pause at $kind', (shop) => {
  const { at, world } = shop

  test('a paused subscription is expired with its pause, is never cancelled, and is active again once it is resumed', async () => {
    const { id, external, customer, read, truth } = await buy(shop)
    moveClock(now() + HOUR)
    const since = Math.floor(now() / 1000) * 1000
    world.pause(external)
    await deliverAll(shop)
    const paused = await read()
    expect(paused).toMatchObject({ status: 'expired', pause: { resumes: null, reason: 'pause_requested' } })
    expect(Math.abs(Date.parse(paused.pause.since) - since)).toBeLessThan(2_000)
    expect((await customer.get('/subscriptions/me')).body).toBeNull()
    const listed = await expectOk(at.admin.get(`/subscriptions?status=expired&billableEntityId=${customer.id}`))
    expect(listed.map(({ _id }: Any) => _id)).toEqual([id])
    expect((await expectOk(customer.get(`/subscriptions/${id}/price-preview`))).payments).toEqual([])
    await pass(shop, 200 * HOUR)
    expect([(await read()).status, truth().status]).toEqual(['expired', 'paused'])
    world.resume(external)
    await deliverAll(shop)
    expect(await read()).toMatchObject({ status: 'active', pause: null })
    await pass(shop, 5 * DAY)
    expect([(await read()).status, truth().status]).toEqual(['active', 'active'])
    expect((await expectOk(customer.get('/subscriptions/me')))._id).toBe(id)
    expect(await eventsOf(shop, 'subscription-paused', id)).toMatchObject([{ status: 'expired', before: 'active' }])
  })

  test('a pause and a resumption whose events were lost are found within an hour', async () => {
    const { external, read } = await buy(shop)
    world.pause(external)
    world.events.splice(0)
    await at.advanceClock(HOUR + 1_000)
    expect(await read()).toMatchObject({ status: 'expired', pause: { reason: 'pause_requested' } })
    world.resume(external)
    world.events.splice(0)
    await at.advanceClock(HOUR + 1_000)
    expect(await read()).toMatchObject({ status: 'active', pause: null })
  })

  test('a paused subscription can be cancelled, here and at the provider', async () => {
    const { id, external, customer, truth } = await buy(shop)
    world.pause(external)
    await deliverAll(shop)
    const canceled = await expectOk(customer.put(`/subscriptions/${id}/cancel`))
    expect(canceled).toMatchObject({ status: 'canceled', pause: null })
    expect(truth().status).toBe('ended')
  })

  test('a resumed subscription beside another one in force waits for an admin, and nothing is cancelled by itself', async () => {
    const first = await buy(shop)
    world.pause(first.external)
    await deliverAll(shop)
    const second = await buy(shop, first.customer)
    moveClock(now() + HOUR)
    world.resume(first.external)
    await deliverAll(shop)
    const waiting = await first.read()
    expect(waiting).toMatchObject({ status: 'expired', conflict: { subscriptionId: second.id } })
    await pass(shop, 5 * DAY)
    expect([first.truth().status, second.truth().status]).toEqual(['active', 'active'])
    expect([(await first.read()).status, (await second.read()).status]).toEqual(['expired', 'active'])
    const told = await eventsOf(shop, 'subscription-conflict', first.id)
    expect(told).toMatchObject([{ existingSubscriptionId: second.id, externalSubscriptionId: first.external }])
    await expectOk(at.admin.put(`/subscriptions/${second.id}/cancel`))
    await at.advanceClock(1_000)
    const after = await first.read()
    expect([after.status, after.conflict, second.truth().status]).toEqual(['active', undefined, 'ended'])
  })

  test('a second paid checkout of an entity stays pending until an admin cancels one of the two', async () => {
    const customer = await at.createCustomer()
    const one = await startCheckout(shop, customer)
    const other = await startCheckout(shop, customer)
    world.pay(one.checkout, false)
    await deliverAll(shop)
    world.pay(other.checkout, false)
    await deliverAll(shop)
    await pass(shop, 5 * DAY)
    const statusOf = (id: string) => world.truths().find(({ ours }) => ours === id)?.status
    expect([await at.status(one.id), await at.status(other.id)]).toEqual(['active', 'pending'])
    expect([statusOf(one.id), statusOf(other.id)]).toEqual(['active', 'active'])
    expect(await eventsOf(shop, 'subscription-conflict', other.id)).toHaveLength(1)
    const listed = await expectOk(at.admin.get(`/subscriptions?hasConflict=true&billableEntityId=${customer.id}`))
    expect(listed.map(({ _id }: Any) => _id)).toEqual([other.id])
    await expectOk(customer.put(`/subscriptions/${other.id}/cancel`))
    expect([await at.status(other.id), statusOf(other.id), statusOf(one.id)]).toEqual(['canceled', 'ended', 'active'])
  })

  test('a payment that arrives before the provider has confirmed the cancellation makes it active', async () => {
    const { external, customer, read, truth } = await buy(shop)
    world.fail(external)
    await deliverAll(shop)
    world.own.failWhen = () => 'down'
    await pass(shop, 4 * DAY)
    expect([(await read()).status, truth().status]).toEqual(['canceled', 'past_due'])
    expect((await customer.get('/subscriptions/me')).body).toBeNull()
    world.own.failWhen = () => undefined
    world.recover(external)
    await pass(shop, 2 * HOUR, HOUR)
    expect([(await read()).status, truth().status]).toEqual(['active', 'active'])
    await deliverAll(shop)
    await pass(shop, 4 * DAY)
    expect([(await read()).status, truth().status]).toEqual(['active', 'active'])
  })

  test('a payment after the confirmed cancellation leaves it canceled, and offers a refund', async () => {
    const { id, external, read, truth } = await buy(shop)
    world.fail(external)
    await deliverAll(shop)
    await pass(shop, 4 * DAY)
    expect([(await read()).status, truth().status]).toEqual(['canceled', 'ended'])
    world.recover(external)
    await deliverAll(shop)
    expect((await read()).status).toBe('canceled')
    expect(await eventsOf(shop, 'refund-offered', id)).toMatchObject([{ amount: 20, currency: 'USD' }])
  })

  test.each([
    ['reported', () => deliverAll(shop)],
    ['not reported', async () => void world.events.splice(0)],
  ])(
    'a former checkout whose payment is %s beside that of the current one is cancelled, and its refund is offered once',
    async (_, report) => {
      const customer = await at.createCustomer()
      const { id, checkout: former } = await startCheckout(shop, customer)
      const { code: couponCode } = await at.createCoupon({})
      const answer = await expectOk(customer.post('/checkout', { subscriptionId: id, couponCode }))
      const current = world.checkoutIn(answer)
      world.pay(current, false)
      const used = world.truths().at(-1)!.id
      await deliverAll(shop)
      moveClock(now() + 2_000)
      world.pay(former, false)
      const surplus = world.truths().find((one) => one.id !== used && one.ours === id)!.id
      await report()
      await pass(shop, 3 * HOUR, HOUR)
      const statusOf = (external: string) => world.truths().find((one) => one.id === external)!.status
      expect([await at.status(id), statusOf(used), statusOf(surplus)]).toEqual(['active', 'active', 'ended'])
      const [invoice] = Object.keys(world.truths().find((one) => one.id === surplus)!.invoices)
      const why = 'It was paid by another checkout of the same subscription.'
      expect(await eventsOf(shop, 'refund-offered', id)).toMatchObject([
        { externalInvoiceId: invoice, amount: 20, currency: 'USD', providerKind: shop.kind, why },
      ])
    },
  )

  test('a checkout that is paid after it was left for a day activates the subscription', async () => {
    const customer = await at.createCustomer()
    const { id, checkout } = await startCheckout(shop, customer)
    world.own.failWhen = () => 'down'
    await pass(shop, DAY + HOUR)
    expect(await at.status(id)).toBe('expired')
    world.pay(checkout, false)
    world.events.splice(0)
    world.own.failWhen = () => undefined
    await pass(shop, 2 * HOUR, HOUR)
    expect(await at.status(id)).toBe('active')
    expect(world.truths().find(({ ours }) => ours === id)!.status).toBe('active')
  })

  test('a subscription that an earlier release ended for its pause is not cancelled when it is resumed', async () => {
    const { id, external, truth } = await buy(shop)
    world.pause(external)
    world.events.splice(0)
    await at.tenant.write((tx) => tx.update(subscriptions).set({ status: 'canceled' }).where(eq(subscriptions._id, id)))
    moveClock(now() + HOUR)
    world.resume(external)
    await deliverAll(shop)
    await pass(shop, 2 * DAY)
    expect([await at.status(id), truth().status]).toEqual(['canceled', 'active'])
    expect((await eventsOf(shop, 'webhook-failed', id)).length).toBeGreaterThan(0)
  })
})

describe('pauses at Stripe', () => {
  const shop = shops.find(({ kind }) => kind === 'stripe')!
  const vendor = shop.world as Any

  test.each([
    ['pause_requested', 'expired', 'pause_requested'],
    ['trial_end_without_payment_method', 'expired', 'trial_end_without_payment_method'],
    ['system', 'expired', 'system'],
    ['something_new', 'expired', 'something_new'],
    ['final_payment_failure', 'past_due', undefined],
  ])('the reason %s makes it %s', async (reason, status, shown) => {
    const { external, read } = await buy(shop)
    vendor.pause(external, reason)
    await deliverAll(shop)
    const row = await read()
    expect([row.status, row.pause?.reason]).toEqual([status, shown])
  })

  test('a pause of the collection changes no status', async () => {
    const { id, external, customer, read } = await buy(shop)
    const resumes = Math.floor(now() / 1000) + 86_400
    vendor.change(external, { pause_collection: { behavior: 'void', resumes_at: resumes } })
    await deliverAll(shop)
    const pause = { resumes: toIsoString(resumes * 1000), reason: 'payment_collection_paused' }
    expect(await read()).toMatchObject({ status: 'active', pause })
    expect((await expectOk(customer.get('/subscriptions/me')))._id).toBe(id)
    moveClock(now() + 2_000)
    vendor.change(external, { pause_collection: null })
    await deliverAll(shop)
    expect(await read()).toMatchObject({ status: 'active', pause: null })
    expect(await eventsOf(shop, 'subscription-resumed', id)).toHaveLength(1)
  })

  test('the provider is told to cancel only after its last attempt to collect the payment', async () => {
    const { external, read, truth } = await buy(shop)
    const invoice = vendor.fail(external) ?? [...vendor.invoices.keys()].at(-1)
    vendor.invoices.get(invoice).next_payment_attempt = Math.floor((now() + 10 * DAY) / 1000)
    await deliverAll(shop)
    await pass(shop, 9 * DAY)
    expect([(await read()).status, truth().status]).toEqual(['canceled', 'past_due'])
    vendor.invoices.get(invoice).next_payment_attempt = null
    await pass(shop, 2 * DAY)
    expect([(await read()).status, truth().status]).toEqual(['canceled', 'ended'])
  })
})
