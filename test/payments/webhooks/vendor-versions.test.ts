import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type Stripe from 'stripe'
import { moveClock, now } from '../../../src/core/clock'
import type { Subscription } from '../../../src/payments/tables'
import { PADDLE_SECRET, signPaddleWebhook, startPaddle } from '../../fakes/vendors/paddle'
import { startPaypal } from '../../fakes/vendors/paypal'
import { signStripeWebhook, startStripe } from '../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createTestTenant } from '../../test-tenant'
import { type Sent, type Shapes, stripeShapes } from './stripe-shapes'
import {
  active,
  freeAtFirst,
  isoOf,
  type Json,
  lapsed,
  MONTH,
  ORDERS,
  pastDue,
  playScenario,
  type Scenario,
  START,
  YEAR,
} from './vendor-scenarios'
import { createConnection, createPendingSubscription, deliver, findSubscription, invoicesOf } from './webhook-fixtures'

setDefaultTimeout(60_000)
const testTenant = await createTestTenant()
const { admin } = { admin: testTenant.as('admin') }
const STRIPE_WEBHOOK_SECRET = 'whsec_of_the_versions'
const stripe = await startStripe({ secret: STRIPE_WEBHOOK_SECRET })
const [paddle, paypal] = [await startPaddle(), await startPaypal()]
beforeAll(async () => {
  allowPrivateNetwork()
  for (const vendor of [stripe, paddle, paypal]) await createConnection(testTenant, vendor.connection())
})
afterEach(() => moveClock())
afterAll(async () => {
  denyPrivateNetwork()
  for (const vendor of [stripe, paddle, paypal]) await vendor.stop()
})

const metadataOf = (subscription: string) => ({ tenant: testTenant.id, subscription })
const VERSIONS = stripeShapes(metadataOf)

let count = 0
const newEvent = (version: string, { type, object }: Sent, created: number) => ({
  ...{ id: `evt_version_${count++}`, object: 'event', api_version: version, created, type, data: { object } },
})

const sendStripe = async (event: object) =>
  deliver(testTenant, 'stripe', signStripeWebhook(JSON.stringify(event), STRIPE_WEBHOOK_SECRET))

const created = (object: Json): Sent => ({ type: 'customer.subscription.created', object })
const updated = (object: Json): Sent => ({ type: 'customer.subscription.updated', object })

const paid = (amount: number, currency = 'usd') => ({
  status: 'paid',
  amount_paid: amount,
  amount_due: amount,
  currency,
})
const open = (amount: number, currency = 'usd') => ({ status: 'open', amount_paid: 0, amount_due: amount, currency })

const session = (id: string, ours: string, fields: Json) => ({
  ...{ id: `cs_${id}`, object: 'checkout.session', mode: 'subscription', subscription: id },
  ...{ metadata: metadataOf(ours), client_reference_id: ours, ...fields },
})

const SCENARIOS: Scenario<Sent, Shapes>[] = [
  {
    title: 'a payment',
    events: ({ subscription, invoice }, id, ours) => [
      created(subscription(id, ours, { status: 'active' }, [MONTH])),
      { type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, paid(2000), [MONTH]) },
    ],
    becomes: { status: 'active', currentPeriodEnd: isoOf(MONTH.end), invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'a pause and a resumption',
    events: ({ subscription, invoice }, id, ours) => [
      created(subscription(id, ours, { status: 'active' }, [MONTH])),
      { type: 'customer.subscription.paused', object: subscription(id, ours, { status: 'paused' }, [MONTH]) },
      { type: 'customer.subscription.resumed', object: subscription(id, ours, { status: 'active' }, [MONTH]) },
      { type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, paid(2000), [MONTH]) },
    ],
    becomes: { status: 'active', pause: null, invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'a trial that ends without a payment method',
    events: ({ subscription, invoice }, id, ours) => {
      const trial = { trial_end: MONTH.end, trial_settings: { end_behavior: { missing_payment_method: 'pause' } } }
      return [
        created(subscription(id, ours, { status: 'trialing', ...trial }, [MONTH])),
        { type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, paid(0), [MONTH]) },
        updated(subscription(id, ours, { status: 'paused', ...trial }, [MONTH])),
      ]
    },
    becomes: {
      status: 'paused',
      pause: expect.objectContaining({ resumes: null, reason: 'trial_end_without_payment_method' }) as never,
      invoices: [['paid', 0, 'USD']],
    },
  },
  {
    title: 'a yearly subscription with a monthly item',
    before: () => ({ billingCycle: 'yearly' }),
    events: ({ version, subscription, invoice }, id, ours) => {
      const periods = version < '2025' ? [YEAR] : [MONTH, YEAR]
      return [
        created(subscription(id, ours, { status: 'active' }, periods)),
        { type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, paid(22_000), [MONTH, YEAR]) },
      ]
    },
    becomes: { status: 'active', currentPeriodEnd: isoOf(YEAR.end) },
  },
  {
    title: 'a monthly subscription with a yearly item',
    events: ({ version, subscription, invoice }, id, ours) => {
      const periods = version < '2025' ? [MONTH] : [YEAR, MONTH]
      return [
        created(subscription(id, ours, { status: 'active' }, periods)),
        { type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, paid(22_000), [MONTH, YEAR]) },
      ]
    },
    becomes: { status: 'active', currentPeriodEnd: isoOf(MONTH.end) },
  },
  {
    title: 'a failed payment that is paid later',
    events: ({ subscription, invoice }, id, ours) => [
      created(subscription(id, ours, { status: 'active' }, [MONTH])),
      { type: 'invoice.payment_failed', object: invoice(`in_${id}`, id, ours, open(2000), [MONTH]) },
      updated(subscription(id, ours, { status: 'past_due' }, [MONTH])),
      { type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, paid(2000), [MONTH]) },
    ],
    becomes: { status: 'active', pastDueSince: null, invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'an invoice of zero alone',
    events: ({ invoice }, id, ours) => [
      { type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, paid(0), [MONTH]) },
    ],
    becomes: { status: 'pending', invoices: [['paid', 0, 'USD']] },
  },
  {
    title: 'a late payment after the grace period',
    before: lapsed,
    events: ({ subscription, invoice }, id, ours) => [
      { type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, paid(2000), [MONTH]) },
      updated(subscription(id, ours, { status: 'active' }, [MONTH])),
    ],
    becomes: { status: 'active', currentPeriodEnd: isoOf(MONTH.end), invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'a coupon of 100 % that ends',
    before: freeAtFirst,
    events: ({ subscription, invoice }, id, ours) => [
      created(subscription(id, ours, { status: 'active' }, [MONTH])),
      { type: 'invoice.paid', object: invoice(`in_a${id}`, id, ours, paid(0), [MONTH]) },
      { type: 'invoice.paid', object: invoice(`in_b${id}`, id, ours, paid(2000), [MONTH]) },
    ],
    becomes: {
      status: 'active',
      invoices: [
        ['paid', 0, 'USD'],
        ['paid', 2000, 'USD'],
      ],
    },
  },
  {
    title: 'an invoice of another sale besides a debt',
    before: pastDue,
    events: ({ invoice }, id, ours) => {
      const sale = { ...paid(500), billing_reason: 'manual' }
      return [{ type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, sale, [MONTH]) }]
    },
    becomes: {
      ...{ status: 'past_due', currentPeriodEnd: pastDue('').currentPeriodEnd! },
      invoices: [['paid', 500, 'USD']],
    },
  },
  {
    title: 'an invoice of another sale that fails',
    before: active,
    events: ({ invoice }, id, ours) => {
      const sale = { ...open(500), billing_reason: 'manual' }
      return [{ type: 'invoice.payment_failed', object: invoice(`in_${id}`, id, ours, sale, [MONTH]) }]
    },
    becomes: { status: 'active', pastDueSince: null, invoices: [['open', 500, 'USD']] },
  },
  {
    title: 'a currency of three decimals',
    before: () => ({ currency: 'KWD' }),
    events: ({ subscription, invoice }, id, ours) => [
      created(subscription(id, ours, { status: 'active' }, [MONTH])),
      { type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, paid(1230, 'kwd'), [MONTH]) },
    ],
    becomes: { status: 'active', invoices: [['paid', 1230, 'KWD']] },
  },
  {
    title: 'a currency without decimals that Stripe counts in hundredths',
    before: () => ({ currency: 'UGX' }),
    events: ({ subscription, invoice }, id, ours) => [
      created(subscription(id, ours, { status: 'active' }, [MONTH])),
      { type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, paid(500_000, 'ugx'), [MONTH]) },
    ],
    becomes: { status: 'active', invoices: [['paid', 5000, 'UGX']] },
  },
  {
    title: 'a session that is not paid yet',
    events: (_, id, ours) => [
      { type: 'checkout.session.completed', object: session(id, ours, { payment_status: 'unpaid' }) },
    ],
    becomes: { status: 'pending' },
  },
  {
    title: 'a session that is paid',
    events: ({ subscription }, id, ours) => [
      { type: 'checkout.session.completed', object: session(id, ours, { payment_status: 'paid', status: 'complete' }) },
      created(subscription(id, ours, { status: 'active' }, [MONTH])),
    ],
    becomes: { status: 'active', currentPeriodEnd: isoOf(MONTH.end) },
  },
  {
    title: 'a session that is paid later',
    events: (_, id, ours) => [
      { type: 'checkout.session.completed', object: session(id, ours, { payment_status: 'unpaid' }) },
      { type: 'checkout.session.async_payment_succeeded', object: session(id, ours, { payment_status: 'paid' }) },
    ],
    becomes: { status: 'active' },
  },
  {
    title: 'a session that expires',
    events: (_, id, ours) => [
      {
        type: 'checkout.session.expired',
        object: session(id, ours, { status: 'expired', payment_status: 'unpaid', subscription: null }),
      },
    ],
    becomes: { status: 'expired', invoices: [] },
  },
  {
    title: 'a trial whose end is announced',
    events: ({ subscription, invoice }, id, ours) => {
      const trial = subscription(id, ours, { status: 'trialing', trial_end: MONTH.end }, [MONTH])
      return [
        created(trial),
        { type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, paid(0), [MONTH]) },
        { type: 'customer.subscription.trial_will_end', object: trial },
      ]
    },
    becomes: { status: 'trialing', trialEndsAt: isoOf(MONTH.end), invoices: [['paid', 0, 'USD']] },
  },
  {
    title: 'an end',
    before: active,
    events: ({ subscription, invoice }, id, ours) => [
      { type: 'invoice.paid', object: invoice(`in_${id}`, id, ours, paid(2000), [MONTH]) },
      { type: 'customer.subscription.deleted', object: subscription(id, ours, { status: 'canceled' }, [MONTH]) },
    ],
    becomes: { status: 'canceled', endedBy: 'provider', invoices: [['paid', 2000, 'USD']] },
  },
  ...['invoice.voided', 'invoice.marked_uncollectible'].map(
    (type): Scenario<Sent, Shapes> => ({
      title: `a debt that is given up by ${type}`,
      before: active,
      events: ({ subscription, invoice }, id, ours) => {
        const status = type === 'invoice.voided' ? 'void' : 'uncollectible'
        return [
          { type: 'invoice.payment_failed', object: invoice(`in_${id}`, id, ours, open(2000), [MONTH]) },
          updated(subscription(id, ours, { status: 'past_due' }, [MONTH])),
          { type, object: invoice(`in_${id}`, id, ours, { ...open(2000), status }, [MONTH]) },
        ]
      },
      becomes: { status: 'past_due', invoices: [['void', 2000, 'USD']] },
    }),
  ),
  {
    title: 'a session that sells no subscription',
    events: (_, id, ours) => [
      {
        type: 'checkout.session.completed',
        object: session(id, ours, { mode: 'payment', payment_status: 'paid', subscription: null }),
      },
    ],
    becomes: { status: 'pending' },
  },
]

const send = async (version: string, one: Sent, id: string, seconds: number): Promise<string> => {
  const { status, body } = await sendStripe({ ...newEvent(version, one, seconds), id })
  expect(status).toBe(200)
  return body.status
}

describe.each(VERSIONS)('Stripe $version', (shapes) => {
  for (const order of ORDERS)
    test.each(SCENARIOS)(`$title, ${order} and doubled`, (scenario) =>
      playScenario(testTenant, 'stripe', shapes, scenario, order, (...all) => send(shapes.version, ...all)),
    )
})

/** The reasons of pauses since version 2026-09-30, and what they make of a subscription. */
const PAUSES: [Stripe.Subscription.StatusDetails.Paused.Subscription.Type, Scenario<Sent, Shapes>['becomes']][] = [
  ['pause_requested', { status: 'paused', pause: pauseFor('pause_requested') }],
  ['trial_end_without_payment_method', { status: 'paused', pause: pauseFor('trial_end_without_payment_method') }],
  ['final_payment_failure', { status: 'past_due', pause: null }],
]
function pauseFor(reason: string) {
  return { since: isoOf(START + 1), resumes: null, reason }
}

describe('pauses of Stripe since version 2026-09-30', () => {
  const [shapes] = VERSIONS.slice(-1)
  const paused = (type: Stripe.Subscription.StatusDetails.Paused.Subscription.Type) => ({
    status: 'paused',
    status_details: {
      paused: { type: 'subscription', transitioned_at: START + 1, subscription: { type } },
    } satisfies Stripe.Subscription.StatusDetails,
  })

  for (const order of ORDERS)
    test.each(PAUSES)(`the reason %s, ${order} and doubled`, (reason, becomes) => {
      const events: Scenario<Sent, Shapes>['events'] = ({ subscription }, id, ours) => [
        created(subscription(id, ours, { status: 'active' }, [MONTH])),
        { type: 'customer.subscription.paused', object: subscription(id, ours, paused(reason), [MONTH]) },
      ]
      const scenario = { title: reason, events, becomes }
      return playScenario(testTenant, 'stripe', shapes!, scenario, order, (...all) => send(shapes!.version, ...all))
    })

  test('a subscription whose first payment failed stays pending, and is active once it is paid', async () => {
    const unpaid: Scenario<Sent, Shapes> = {
      title: 'first_payment_failure',
      events: ({ subscription }, id, ours) => [
        created(subscription(id, ours, { status: 'incomplete' }, [MONTH])),
        updated(subscription(id, ours, paused('first_payment_failure'), [MONTH])),
      ],
      becomes: { status: 'pending', pause: null, invoices: [] },
    }
    const isPaid: Scenario<Sent, Shapes> = {
      ...unpaid,
      events: (of, id, ours) => [
        ...unpaid.events(of, id, ours),
        { type: 'invoice.paid', object: of.invoice(`in_${id}`, id, ours, paid(2000), [MONTH]) },
        updated(of.subscription(id, ours, { status: 'active' }, [MONTH])),
      ],
      becomes: { status: 'active', pause: null, invoices: [['paid', 2000, 'USD']] },
    }
    for (const scenario of [unpaid, isPaid])
      await playScenario(testTenant, 'stripe', shapes!, scenario, 'in order', (...all) => send(shapes!.version, ...all))
  })
})

const lastEvent = async () => (await admin.get('/payments/events?limit=1')).body[0]

describe('events that cannot be understood', () => {
  test('a thin event of Stripe is answered with 200, and its row says that the endpoint sends thin payloads', async () => {
    const thin = {
      ...{ id: 'evt_thin_1', object: 'v2.core.event', type: 'v1.customer.subscription.updated', livemode: false },
      ...{ created: new Date(now()).toISOString(), context: null },
      related_object: { id: 'sub_thin', type: 'subscription', url: '/v1/subscriptions/sub_thin' },
    }
    const { status, body } = await sendStripe(thin)
    expect([status, body.status]).toEqual([200, 'failed'])
    const row = await lastEvent()
    expect(row).toMatchObject({ eventId: 'evt_thin_1', status: 'failed', nextAttempt: null })
    expect(row.outcome).toContain('thin payloads')
    const [event] = (await admin.get('/events?eventName=webhook-failed&limit=1')).body
    expect(event.metadata).toMatchObject({ eventId: 'evt_thin_1' })
  })

  test.each(['2099-01-01.zenith', '2031-01-01', 'latest'])(
    'a Stripe event of the unknown version %s fails and changes nothing',
    async (version) => {
      const row = await createPendingSubscription(testTenant, { providerKind: 'stripe' })
      const object = VERSIONS[2]!.subscription(`sub_${count++}`, row._id, { status: 'active' }, [MONTH])
      const { status, body } = await sendStripe(newEvent(version, created(object), START))
      expect([status, body.status]).toEqual([200, 'failed'])
      expect((await lastEvent()).outcome).toContain(version)
      expect(await findSubscription(testTenant, row)).toEqual(row)
      const ignored = newEvent(version, { type: 'customer.created', object: { id: 'cus_1' } }, START)
      expect((await sendStripe(ignored)).body.status).toBe('ignored')
    },
  )

  test('an unknown status fails at each vendor, and changes nothing', async () => {
    const row = await createPendingSubscription(testTenant, { providerKind: 'stripe' })
    const object = VERSIONS[2]!.subscription(`sub_${count++}`, row._id, { status: 'hibernating' }, [MONTH])
    expect((await sendStripe(newEvent('2026-09-30.endive', updated(object), START))).body.status).toBe('failed')
    expect((await lastEvent()).outcome).toContain('hibernating')
    const data = { id: 'sub_01x', status: 'hibernating', custom_data: metadataOf(row._id) }
    const ours = { event_id: `evt_${count++}`, event_type: 'subscription.updated', occurred_at: isoOf(START), data }
    const signed = signPaddleWebhook(JSON.stringify(ours), PADDLE_SECRET, Math.floor(now() / 1000))
    expect((await deliver(testTenant, 'paddle', signed)).body.status).toBe('failed')
    const resource = { id: 'I-HIBERNATE', status: 'HIBERNATING', custom_id: row._id }
    const event = { ...paypalEvent('BILLING.SUBSCRIPTION.UPDATED', resource) }
    expect((await deliver(testTenant, 'paypal', paypal.signEvent(event))).body.status).toBe('failed')
    expect(await findSubscription(testTenant, row)).toEqual(row)
  })

  test('a PayPal event of an unknown version fails, and changes nothing', async () => {
    const row = await createPendingSubscription(testTenant, { providerKind: 'paypal' })
    const resource = { id: 'I-VERSION', status: 'ACTIVE', custom_id: row._id }
    const event = { ...paypalEvent('BILLING.SUBSCRIPTION.ACTIVATED', resource), resource_version: '9.0' }
    expect((await deliver(testTenant, 'paypal', paypal.signEvent(event))).body.status).toBe('failed')
    expect((await lastEvent()).outcome).toContain('9.0')
    expect(await findSubscription(testTenant, row)).toEqual(row)
  })
})

const paypalEvent = (event_type: string, resource: Json, create_time = isoOf(START)) => ({
  ...{ id: `WH-VERSION-${count++}`, event_version: '1.0', resource_version: '2.0', resource_type: 'subscription' },
  ...{ event_type, create_time, resource, summary: event_type, links: [] },
})

describe('failures that arrive late', () => {
  const sendPaypal = (type: string, resource: Json, seconds: number) =>
    deliver(testTenant, 'paypal', paypal.signEvent(paypalEvent(type, resource, isoOf(START + seconds))))

  async function activate() {
    moveClock((START + 60) * 1000)
    const row = await createPendingSubscription(testTenant, { providerKind: 'paypal' })
    const id = `I-LATE${count++}`
    const resource = { id, custom_id: row._id, status: 'ACTIVE' }
    const sale = (name: string) => ({
      ...{ id: `${id}-${name}`, billing_agreement_id: id, custom: row._id },
      amount: { total: '20.00', currency: 'USD' },
    })
    const failure = {
      ...resource,
      billing_info: {
        failed_payments_count: 1,
        last_failed_payment: { amount: { value: '20.00', currency_code: 'USD' }, time: isoOf(START) },
      },
    }
    await sendPaypal('BILLING.SUBSCRIPTION.ACTIVATED', resource, 0)
    return { row, sale, failure }
  }
  const statuses = async (row: Subscription) => (await invoicesOf(testTenant, row)).map(([, status]) => status)

  test('an older failure at PayPal leaves no open invoice', async () => {
    const { row, sale, failure } = await activate()
    await sendPaypal('PAYMENT.SALE.COMPLETED', sale('A'), 2)
    await sendPaypal('PAYMENT.SALE.COMPLETED', sale('B'), 6)
    await sendPaypal('BILLING.SUBSCRIPTION.PAYMENT.FAILED', failure, 4)
    expect((await findSubscription(testTenant, row)).status).toBe('active')
    expect(await statuses(row)).toEqual(['paid', 'paid'])
  })

  test('an older payment at PayPal leaves the invoice of a later failure open', async () => {
    const { row, sale, failure } = await activate()
    await sendPaypal('BILLING.SUBSCRIPTION.PAYMENT.FAILED', failure, 4)
    await sendPaypal('PAYMENT.SALE.COMPLETED', sale('A'), 2)
    expect((await findSubscription(testTenant, row)).status).toBe('past_due')
    expect((await statuses(row)).sort()).toEqual(['open', 'paid'])
    await sendPaypal('PAYMENT.SALE.COMPLETED', sale('B'), 6)
    expect((await findSubscription(testTenant, row)).status).toBe('active')
    expect((await statuses(row)).sort()).toEqual(['paid', 'paid', 'void'])
  })

  test('an older failure at Stripe leaves no open invoice of a subscription that was paid since', async () => {
    moveClock((START + 60) * 1000)
    const { version, subscription, invoice } = VERSIONS[2]!
    const row = await createPendingSubscription(testTenant, { providerKind: 'stripe' })
    const id = `sub_late_${count++}`
    const send = (one: Sent, seconds: number) => sendStripe(newEvent(version, one, START + seconds))
    await send(created(subscription(id, row._id, { status: 'active' }, [MONTH])), 0)
    await send({ type: 'invoice.paid', object: invoice(`in_b${id}`, id, row._id, paid(2000), [MONTH]) }, 6)
    const failed = invoice(`in_a${id}`, id, row._id, open(2000), [MONTH])
    await send({ type: 'invoice.payment_failed', object: failed }, 4)
    expect((await findSubscription(testTenant, row)).status).toBe('active')
    expect(await statuses(row)).toEqual(['paid'])
  })
})
