import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { Paddle } from '@paddle/paddle-node-sdk'
import { moveClock, now } from '../../../src/core/clock'
import { PADDLE_SECRET, signPaddleWebhook, startPaddle } from '../../fakes/vendors/paddle'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createTestTenant } from '../../test-tenant'
import { item, type PaddleShapes, paddleShapes, periodOf, price } from './paddle-shapes'
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
} from './vendor-scenarios'
import { createConnection, createPendingSubscription, deliver, findSubscription, invoicesOf } from './webhook-fixtures'

setDefaultTimeout(60_000)
const testTenant = await createTestTenant()
const paddle = await startPaddle()
beforeAll(async () => {
  allowPrivateNetwork()
  await createConnection(testTenant, paddle.connection())
})
afterEach(() => moveClock())
afterAll(async () => {
  denyPrivateNetwork()
  await paddle.stop()
})

type Sent = { type: string; data: Json }
type Shapes = PaddleShapes
const SHAPES = paddleShapes(testTenant.id)
const [today] = SHAPES

const declined = { status: 'error', error_code: 'declined', amount: '2000', created_at: isoOf(START) }
const due = { status: 'past_due', payments: [declined] }
const paused = { status: 'paused', paused_at: isoOf(START), current_billing_period: null, next_billed_at: null }
const canceled = { status: 'canceled', canceled_at: isoOf(START), current_billing_period: null, next_billed_at: null }
const trialing = { status: 'trialing', items: [{ ...item, status: 'trialing', trial_dates: periodOf(MONTH) }] }
const adjustment = (id: string, of: string, fields: Json) => ({
  ...{ id: `adj_${id}`, action: 'refund', type: 'full', transaction_id: `txn_${id}`, subscription_id: of },
  ...{ customer_id: 'ctm_1', reason: 'error', credit_applied_to_balance: null, currency_code: 'USD', items: [] },
  ...{
    totals: { subtotal: '2000', tax: '0', total: '2000' },
    payout_totals: null,
    created_at: isoOf(START),
    ...fields,
  },
})
const atZero = (amount: string, currency_code: string) => ({ amount, currency_code })

const currencyScenario = (currency: string, amount: string, minor = Number(amount)): Scenario<Sent, Shapes> => ({
  title: `a payment in ${currency}`,
  before: () => ({ currency }),
  events: ({ subscription, transaction }, id, ours) => [
    { type: 'subscription.activated', data: subscription(id, ours, { currency_code: currency }) },
    { type: 'transaction.completed', data: transaction(`txn_${id}`, id, ours, amount, { currency_code: currency }) },
  ],
  becomes: { status: 'active', invoices: [['paid', minor, currency]] },
})

const SCENARIOS: Scenario<Sent, Shapes>[] = [
  {
    title: 'a payment, which is reported as paid before it is completed',
    events: ({ subscription, transaction }, id, ours) => [
      { type: 'subscription.created', data: subscription(id, ours) },
      { type: 'subscription.activated', data: subscription(id, ours) },
      { type: 'transaction.paid', data: transaction(`txn_${id}`, id, ours, '2000', { status: 'paid' }) },
      { type: 'transaction.completed', data: transaction(`txn_${id}`, id, ours, '2000', { origin: 'web' }) },
    ],
    becomes: { status: 'active', currentPeriodEnd: isoOf(MONTH.end), invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'a pause and a resumption',
    before: active,
    events: ({ subscription, transaction }, id, ours) => [
      { type: 'subscription.updated', data: subscription(id, ours, paused) },
      { type: 'subscription.paused', data: subscription(id, ours, paused) },
      { type: 'subscription.updated', data: subscription(id, ours) },
      { type: 'subscription.resumed', data: subscription(id, ours) },
      { type: 'transaction.completed', data: transaction(`txn_${id}`, id, ours, '2000') },
    ],
    becomes: { status: 'active', pause: null, invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'a pause until a day',
    before: active,
    events: ({ subscription }, id, ours) => {
      const resume = { action: 'resume', effective_at: isoOf(MONTH.end), resume_at: null }
      return [{ type: 'subscription.paused', data: subscription(id, ours, { ...paused, scheduled_change: resume }) }]
    },
    becomes: { status: 'paused', pause: { since: isoOf(START), resumes: isoOf(MONTH.end), reason: 'pause_requested' } },
  },
  {
    title: 'a pause that is scheduled',
    before: active,
    events: ({ subscription }, id, ours) => {
      const pause = { action: 'pause', effective_at: isoOf(MONTH.end), resume_at: null }
      return [{ type: 'subscription.updated', data: subscription(id, ours, { scheduled_change: pause }) }]
    },
    becomes: { status: 'active', pause: null, cancelAtPeriodEnd: false, currentPeriodEnd: isoOf(MONTH.end) },
  },
  {
    title: 'a cancellation that is scheduled',
    before: active,
    events: ({ subscription }, id, ours) => {
      const cancel = { action: 'cancel', effective_at: isoOf(MONTH.end), resume_at: null }
      return [{ type: 'subscription.updated', data: subscription(id, ours, { scheduled_change: cancel }) }]
    },
    becomes: { status: 'active', cancelAtPeriodEnd: true },
  },
  {
    title: 'a trial that ends without a payment method',
    events: ({ subscription, transaction }, id, ours) => [
      { type: 'subscription.created', data: subscription(id, ours, trialing) },
      { type: 'subscription.trialing', data: subscription(id, ours, trialing) },
      { type: 'transaction.completed', data: transaction(`txn_${id}`, id, ours, '0', { origin: 'api' }) },
      { type: 'subscription.updated', data: subscription(id, ours, canceled) },
      { type: 'subscription.canceled', data: subscription(id, ours, canceled) },
    ],
    becomes: { status: 'canceled', invoices: [['paid', 0, 'USD']] },
  },
  {
    title: 'a trial that becomes a subscription',
    events: ({ subscription, transaction }, id, ours) => [
      { type: 'subscription.created', data: subscription(id, ours, trialing) },
      { type: 'subscription.trialing', data: subscription(id, ours, trialing) },
      { type: 'subscription.updated', data: subscription(id, ours) },
      { type: 'subscription.activated', data: subscription(id, ours) },
      { type: 'transaction.completed', data: transaction(`txn_${id}`, id, ours, '2000') },
    ],
    becomes: { status: 'active', invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'a failed renewal that is paid later',
    before: active,
    events: ({ subscription, transaction }, id, ours) => [
      { type: 'transaction.payment_failed', data: transaction(`txn_${id}`, id, ours, '2000', due) },
      { type: 'transaction.past_due', data: transaction(`txn_${id}`, id, ours, '2000', due) },
      { type: 'subscription.updated', data: subscription(id, ours, { status: 'past_due' }) },
      { type: 'subscription.past_due', data: subscription(id, ours, { status: 'past_due' }) },
      { type: 'transaction.completed', data: transaction(`txn_${id}`, id, ours, '2000') },
      { type: 'subscription.updated', data: subscription(id, ours) },
    ],
    becomes: { status: 'active', pastDueSince: null, invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'an invoice that is not paid in time',
    before: active,
    events: ({ transaction }, id, ours) => {
      const manual = { status: 'past_due', collection_mode: 'manual' }
      return [{ type: 'transaction.past_due', data: transaction(`txn_${id}`, id, ours, '2000', manual) }]
    },
    becomes: { status: 'past_due', invoices: [['open', 2000, 'USD']] },
  },
  {
    title: 'a payment that Paddle gives up',
    before: pastDue,
    events: ({ subscription, transaction }, id, ours) => [
      { type: 'transaction.payment_failed', data: transaction(`txn_${id}`, id, ours, '2000', due) },
      {
        type: 'transaction.canceled',
        data: transaction(`txn_${id}`, id, ours, '2000', { ...due, status: 'canceled' }),
      },
      { type: 'subscription.paused', data: subscription(id, ours, paused) },
    ],
    becomes: {
      status: 'paused',
      pause: expect.objectContaining({ reason: 'final_payment_failure' }) as never,
      invoices: [['void', 2000, 'USD']],
    },
  },
  {
    title: 'a late payment after the grace period',
    before: lapsed,
    events: ({ subscription, transaction }, id, ours) => [
      { type: 'transaction.completed', data: transaction(`txn_${id}`, id, ours, '2000') },
      { type: 'subscription.updated', data: subscription(id, ours) },
    ],
    becomes: { status: 'active', currentPeriodEnd: isoOf(MONTH.end), invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'a coupon of 100 % that ends',
    before: freeAtFirst,
    events: ({ subscription, transaction }, id, ours) => [
      { type: 'subscription.activated', data: subscription(id, ours) },
      { type: 'transaction.completed', data: transaction(`txn_a${id}`, id, ours, '0') },
      { type: 'transaction.completed', data: transaction(`txn_b${id}`, id, ours, '2000') },
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
    title: 'an invoice of zero alone',
    events: ({ transaction }, id, ours) => [
      { type: 'transaction.completed', data: transaction(`txn_${id}`, id, ours, '0') },
    ],
    becomes: { status: 'pending', invoices: [['paid', 0, 'USD']] },
  },
  {
    title: 'another card for a debt that is not paid yet',
    before: pastDue,
    events: ({ transaction }, id, ours) => {
      const change = { origin: 'subscription_payment_method_change', billing_period: null }
      return [{ type: 'transaction.completed', data: { ...transaction(`txn_${id}`, id, ours, '0'), ...change } }]
    },
    becomes: { status: 'past_due', invoices: [['paid', 0, 'USD']] },
  },
  {
    title: 'a charge besides a debt that is not paid yet',
    before: pastDue,
    events: ({ transaction }, id, ours) => {
      const charge = { origin: 'subscription_charge', billing_period: null }
      return [{ type: 'transaction.completed', data: { ...transaction(`txn_${id}`, id, ours, '500'), ...charge } }]
    },
    becomes: { ...pastDue(''), externalSubscriptionId: expect.any(String) as never, invoices: [['paid', 500, 'USD']] },
  },
  {
    title: 'a charge that fails besides a period that is paid',
    before: active,
    events: ({ transaction }, id, ours) => {
      const charge = { ...due, origin: 'subscription_charge', billing_period: null, status: 'billed' }
      return [{ type: 'transaction.payment_failed', data: { ...transaction(`txn_${id}`, id, ours, '500'), ...charge } }]
    },
    becomes: { status: 'active', pastDueSince: null, invoices: [['open', 500, 'USD']] },
  },
  {
    title: 'items that are inactive or billed once',
    events: ({ subscription }, id, ours) => {
      const once = { ...item, status: 'inactive', recurring: false, next_billed_at: null }
      const onePrice = { ...price, billing_cycle: null, unit_price: atZero('100', 'USD') }
      const items = [{ ...once, price: onePrice }, ...(trialing.items as object[])]
      return [{ type: 'subscription.trialing', data: subscription(id, ours, { ...trialing, items }) }]
    },
    becomes: { status: 'trialing', trialEndsAt: isoOf(MONTH.end), currentPeriodEnd: isoOf(MONTH.end) },
  },
  {
    title: 'refunds, chargebacks and what becomes of them',
    before: active,
    events: ({ transaction }, id, ours) => [
      { type: 'transaction.completed', data: transaction(`txn_${id}`, id, ours, '2000') },
      { type: 'adjustment.created', data: adjustment(id, id, { status: 'pending_approval' }) },
      { type: 'adjustment.updated', data: adjustment(id, id, { status: 'rejected' }) },
      { type: 'adjustment.updated', data: adjustment(id, id, { status: 'approved', type: 'partial' }) },
      { type: 'adjustment.created', data: adjustment(id, id, { status: 'approved', action: 'chargeback' }) },
      { type: 'adjustment.updated', data: adjustment(id, id, { status: 'reversed', action: 'chargeback_warning' }) },
      { type: 'transaction.updated', data: transaction(`txn_${id}`, id, ours, '2000') },
    ],
    becomes: { status: 'active', invoices: [['paid', 2000, 'USD']] },
  },
  currencyScenario('JPY', '2000'),
  currencyScenario('KRW', '25000'),
  currencyScenario('CLP', '19990'),
  currencyScenario('VND', '500000'),
  currencyScenario('HUF', '599000'),
]

const eventOf = ({ type, data }: Sent, event_id: string, seconds: number) => ({
  ...{ event_id, event_type: type, occurred_at: isoOf(seconds), notification_id: `ntf_${event_id}`, data },
})
const sendRaw = (event: object) =>
  deliver(testTenant, 'paddle', signPaddleWebhook(JSON.stringify(event), PADDLE_SECRET, Math.floor(now() / 1000)))
const send = async (one: Sent, id: string, seconds: number): Promise<string> => {
  const { status, body } = await sendRaw(eventOf(one, id, seconds))
  expect(status).toBe(200)
  return body.status
}

describe.each(SHAPES)('Paddle, the shape $shape', (shapes) => {
  for (const order of shapes === today ? ORDERS : ORDERS.slice(0, 1))
    test.each(SCENARIOS)(`$title, ${order} and doubled`, (scenario) =>
      playScenario(testTenant, 'paddle', shapes, scenario, order, send),
    )
})

test('an older failure of another transaction at Paddle leaves no open invoice of what was paid since', async () => {
  moveClock((START + 60) * 1000)
  const row = await createPendingSubscription(testTenant, { providerKind: 'paddle' })
  const id = 'sub_late'
  await send({ type: 'subscription.activated', data: today.subscription(id, row._id) }, 'evt_late_1', START)
  const settled = today.transaction('txn_late_b', id, row._id, '2000')
  await send({ type: 'transaction.completed', data: settled }, 'evt_late_2', START + 6)
  const failed = today.transaction('txn_late_a', id, row._id, '2000', due)
  await send({ type: 'transaction.payment_failed', data: failed }, 'evt_late_3', START + 4)
  expect((await findSubscription(testTenant, row)).status).toBe('active')
  expect((await invoicesOf(testTenant, row)).map(([external, status]) => [external, status])).toEqual([
    ['txn_late_b', 'paid'],
  ])
})

test("the official Paddle SDK reads the events of these scenarios, which are of Paddle's shape", async () => {
  for (const { events } of SCENARIOS)
    for (const [n, one] of events(today, 'sub_1', 'ours').entries()) {
      const raw = JSON.stringify(eventOf(one, `evt_${n}`, START))
      const { headers } = signPaddleWebhook(raw, PADDLE_SECRET, Math.floor(Date.now() / 1000))
      const read = await new Paddle('unused').webhooks.unmarshal(raw, PADDLE_SECRET, headers['paddle-signature']!)
      expect(read).toMatchObject({ eventType: one.type, data: { id: one.data.id } })
    }
})

test.each([
  { type: 'subscription.hibernated', data: { id: 'sub_1', status: 'hibernating' } },
  { type: 'transaction.forgiven', data: [] },
  { type: 'constructor', data: null },
])('a Paddle event of the unknown type $type is answered with 200 and ignored', async ({ type, data }) => {
  const row = await createPendingSubscription(testTenant, { providerKind: 'paddle' })
  const sent = {
    ...(Array.isArray(data) || !data ? {} : data),
    custom_data: { tenant: testTenant.id, subscription: row._id },
  }
  const { status, body } = await sendRaw(eventOf({ type, data: sent }, `evt_${type}`, START))
  expect([status, body.status]).toEqual([200, 'ignored'])
  expect(await findSubscription(testTenant, row)).toEqual(row)
})
