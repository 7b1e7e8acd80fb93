import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { moveClock } from '../../../src/core/clock'
import { startPaypal } from '../../fakes/vendors/paypal'
import { hasSpecs } from '../../fakes/vendors/specs'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createTestTenant } from '../../test-tenant'
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
import { createConnection, createPendingSubscription, deliver, findSubscription } from './webhook-fixtures'

setDefaultTimeout(60_000)
const testTenant = await createTestTenant()
const paypal = await startPaypal()
beforeAll(async () => {
  allowPrivateNetwork()
  await createConnection(testTenant, paypal.connection())
})
afterEach(() => moveClock())
afterAll(async () => {
  denyPrivateNetwork()
  await paypal.stop()
})

type Sent = { type: string; resource: Json; resource_version?: string | undefined }
/** The shapes of payments: `sale` of version 1, and that of version 2 with the amounts of newer objects. */
type Shapes = { version: string; sale(id: string, of: string, ours: string, value: string, currency?: string): Json }

const money = (value: string, currency_code = 'USD') => ({ value, currency_code })
const of = (id: string) => id.toUpperCase().replace(/^PAYPAL_/, 'I-ROW')

const shapes = (version: string): Shapes => ({
  version,
  sale: (id, billing_agreement_id, ours, value, currency = 'USD') => ({
    ...{ id, billing_agreement_id, create_time: isoOf(START), update_time: isoOf(START) },
    ...(version === '2.0'
      ? { status: 'COMPLETED', custom_id: ours, amount: money(value, currency) }
      : {
          ...{ state: 'completed', payment_mode: 'INSTANT_TRANSFER', protection_eligibility: 'ELIGIBLE', custom: ours },
          amount: { total: value, currency, details: { subtotal: value } },
        }),
  }),
})
const VERSIONS = [shapes('1.0'), shapes('2.0'), shapes('')]

const regular = (cycles_completed: number, sequence = 1) => ({
  ...{ tenure_type: 'REGULAR', sequence, cycles_completed, cycles_remaining: 0, total_cycles: 0 },
})
const trial = { ...{ tenure_type: 'TRIAL', sequence: 1, cycles_completed: 1, cycles_remaining: 0, total_cycles: 1 } }
const lastPayment = { amount: money('20.00'), time: isoOf(START) }
const info = (fields: Json = {}) => ({
  ...{ outstanding_balance: money('0.0'), failed_payments_count: 0, cycle_executions: [regular(1)] },
  ...{ last_payment: lastPayment, next_billing_time: isoOf(MONTH.end), ...fields },
})
const onTrial = info({ cycle_executions: [trial, regular(0, 2)], last_payment: undefined })
const late = (failed_payments_count = 1) =>
  info({
    ...{ failed_payments_count, outstanding_balance: money('20.00') },
    last_failed_payment: { amount: money('20.00'), time: isoOf(START), reason_code: 'PAYER_CANNOT_PAY' },
  })

const BILLING = 'BILLING.SUBSCRIPTION'
const billing = (type: string, status: string, id: string, custom_id: string, billing_info: Json = info()): Sent => ({
  type: `${BILLING}.${type}`,
  resource: {
    ...{ id: of(id), plan_id: 'P-PRO', status, custom_id, quantity: '1', start_time: isoOf(START), billing_info },
    ...{ create_time: isoOf(START), update_time: isoOf(START), status_update_time: isoOf(START) },
  },
})
const sold = ({ version, sale }: Shapes, id: string, ours: string, value: string, currency?: string): Sent => ({
  ...{ type: 'PAYMENT.SALE.COMPLETED', resource_version: version },
  resource: sale(`${of(id)}S${value}`, of(id), ours, value, currency),
})
const refund = (id: string, value: string) => ({
  ...{ id: `${of(id)}R`, sale_id: `${of(id)}S20.00`, state: 'completed', create_time: isoOf(START) },
  ...{ amount: { total: value, currency: 'USD' }, total_refunded_amount: { value, currency: 'USD' } },
})

const currencyScenario = (currency: string, value: string, minor: number): Scenario<Sent, Shapes> => ({
  title: `a payment in ${currency}`,
  before: () => ({ currency }),
  events: (shapes, id, ours) => [
    billing(
      'ACTIVATED',
      'ACTIVE',
      id,
      ours,
      info({ last_payment: { amount: money(value, currency), time: isoOf(START) } }),
    ),
    sold(shapes, id, ours, value, currency),
  ],
  becomes: { status: 'active', invoices: [['paid', minor, currency]] },
})

const SCENARIOS: Scenario<Sent, Shapes>[] = [
  {
    title: 'a payment',
    events: (shapes, id, ours) => [
      billing('CREATED', 'APPROVAL_PENDING', id, ours, undefined),
      billing('ACTIVATED', 'ACTIVE', id, ours),
      sold(shapes, id, ours, '20.00'),
    ],
    becomes: { status: 'active', invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'a suspension and a new activation',
    events: (shapes, id, ours) => [
      billing('ACTIVATED', 'ACTIVE', id, ours),
      sold(shapes, id, ours, '20.00'),
      billing('SUSPENDED', 'SUSPENDED', id, ours, info({ next_billing_time: undefined })),
      billing('RE-ACTIVATED', 'ACTIVE', id, ours),
    ],
    becomes: { status: 'active', pause: null, invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'a suspension on request',
    before: (id) => active(of(id)),
    events: (_, id, ours) => [billing('SUSPENDED', 'SUSPENDED', id, ours, info({ next_billing_time: undefined }))],
    becomes: { status: 'paused', pause: { since: isoOf(START), resumes: null, reason: 'pause_requested' } },
  },
  {
    title: 'a suspension after the last failed payment',
    before: (id) => pastDue(of(id)),
    events: (_, id, ours) => [billing('SUSPENDED', 'SUSPENDED', id, ours, late(3))],
    becomes: { status: 'paused', pause: expect.objectContaining({ reason: 'final_payment_failure' }) as never },
  },
  {
    title: 'a trial without a payment',
    events: (_, id, ours) => [billing('ACTIVATED', 'ACTIVE', id, ours, onTrial)],
    becomes: { status: 'trialing', trialEndsAt: isoOf(MONTH.end), currentPeriodEnd: isoOf(MONTH.end), invoices: [] },
  },
  {
    title: 'a trial that is paid afterwards',
    events: (shapes, id, ours) => [
      billing('ACTIVATED', 'ACTIVE', id, ours, onTrial),
      billing('UPDATED', 'ACTIVE', id, ours, onTrial),
      sold(shapes, id, ours, '20.00'),
    ],
    becomes: { status: 'active', invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'a trial that was paid for',
    events: (shapes, id, ours) => [
      billing('ACTIVATED', 'ACTIVE', id, ours, info({ cycle_executions: [trial, regular(0, 2)] })),
      sold(shapes, id, ours, '1.00'),
    ],
    becomes: { status: 'active', invoices: [['paid', 100, 'USD']] },
  },
  {
    title: 'a trial whose first payment fails',
    before: (id) => ({ ...active(of(id)), status: 'trialing' }),
    events: (_, id, ours) => {
      const failed = { ...late(), cycle_executions: [trial, regular(0, 2)], last_payment: undefined }
      return [billing('PAYMENT.FAILED', 'ACTIVE', id, ours, failed), billing('UPDATED', 'ACTIVE', id, ours, failed)]
    },
    becomes: { status: 'past_due' },
  },
  {
    title: 'a failed payment that is paid later',
    before: (id) => active(of(id)),
    events: (shapes, id, ours) => [
      billing('PAYMENT.FAILED', 'ACTIVE', id, ours, late()),
      billing('UPDATED', 'ACTIVE', id, ours, late(2)),
      sold(shapes, id, ours, '20.00'),
    ],
    becomes: { status: 'active', pastDueSince: null },
  },
  {
    title: 'a late payment after the grace period',
    before: (id) => lapsed(of(id)),
    events: (shapes, id, ours) => [sold(shapes, id, ours, '20.00'), billing('UPDATED', 'ACTIVE', id, ours)],
    becomes: { status: 'active', pastDueSince: null, invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'a coupon of 100 % that ends',
    before: freeAtFirst,
    events: (shapes, id, ours) => [
      billing('ACTIVATED', 'ACTIVE', id, ours),
      sold(shapes, id, ours, '0.00'),
      sold(shapes, id, ours, '20.00'),
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
    title: 'a sale of zero alone',
    events: (shapes, id, ours) => [sold(shapes, id, ours, '0.00')],
    becomes: { status: 'pending', invoices: [['paid', 0, 'USD']] },
  },
  {
    title: 'no time of a next payment',
    events: (_, id, ours) => [billing('ACTIVATED', 'ACTIVE', id, ours, info({ next_billing_time: undefined }))],
    becomes: { status: 'active', currentPeriodStart: isoOf(START), currentPeriodEnd: isoOf(MONTH.end) },
  },
  {
    title: 'a payment after the time of the next one',
    before: (id) => active(of(id)),
    events: (_, id, ours) => {
      const paid = { amount: money('20.00'), time: isoOf(MONTH.end + 60) }
      return [billing('UPDATED', 'ACTIVE', id, ours, info({ last_payment: paid }))]
    },
    becomes: { status: 'active', currentPeriodStart: isoOf(MONTH.start), currentPeriodEnd: isoOf(MONTH.end) },
  },
  {
    title: 'the last cycle and its end',
    before: (id) => active(of(id)),
    events: (shapes, id, ours) => [
      sold(shapes, id, ours, '20.00'),
      billing('EXPIRED', 'EXPIRED', id, ours, info({ next_billing_time: undefined, final_payment_time: isoOf(START) })),
    ],
    becomes: { status: 'expired', invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'refunds of a part and of the whole, and a reversal',
    before: (id) => active(of(id)),
    events: (shapes, id, ours) => [
      sold(shapes, id, ours, '20.00'),
      { type: 'PAYMENT.SALE.REFUNDED', resource: refund(id, '5.00') },
      { type: 'PAYMENT.SALE.REFUNDED', resource: refund(id, '20.00') },
      { type: 'PAYMENT.SALE.REVERSED', resource: { ...sold(shapes, id, ours, '20.00').resource, state: 'reversed' } },
    ],
    becomes: { status: 'active', invoices: [['paid', 2000, 'USD']] },
  },
  {
    title: 'a capture of an order of yours',
    events: (_, id, custom_id) => [
      {
        ...{ type: 'PAYMENT.CAPTURE.COMPLETED', resource_version: '2.0' },
        resource: {
          ...{ id: `${of(id)}C`, status: 'COMPLETED', final_capture: true, custom_id, amount: money('20.00') },
          supplementary_data: { related_ids: { order_id: '5O190127TN364715T' } },
        },
      },
      { type: 'PAYMENT.CAPTURE.REFUNDED', resource: { id: `${of(id)}D`, custom_id, amount: money('20.00') } },
    ],
    becomes: { status: 'pending', invoices: [] },
  },
  currencyScenario('JPY', '500', 500),
  currencyScenario('HUF', '1999', 199_900),
  currencyScenario('TWD', '300', 30_000),
  currencyScenario('EUR', '9.90', 990),
]

const eventOf = ({ type, resource, resource_version }: Sent, id: string, seconds: number) => ({
  ...{ id: `WH-${id}`, event_version: '1.0', create_time: isoOf(seconds), event_type: type, summary: type, links: [] },
  ...{ resource_type: type.startsWith(BILLING) ? 'subscription' : 'sale', resource },
  ...(resource_version !== '' && { resource_version: resource_version ?? '2.0' }),
})
const send = async (one: Sent, id: string, seconds: number): Promise<string> => {
  const { status, body } = await deliver(testTenant, 'paypal', paypal.signEvent(eventOf(one, id, seconds)))
  expect(status).toBe(200)
  return body.status
}

describe.each(VERSIONS)('PayPal, payments of version "$version"', (shapes) => {
  for (const order of shapes === VERSIONS[0] ? ORDERS : ORDERS.slice(0, 1))
    test.each(SCENARIOS)(`$title, ${order} and doubled`, (scenario) =>
      playScenario(testTenant, 'paypal', shapes, scenario, order, send),
    )
})

test.skipIf(!hasSpecs)("the events of these scenarios are of the shape that PayPal's API documents describe", () => {
  for (const { events } of SCENARIOS)
    for (const one of events(VERSIONS[0]!, 'paypal_1', 'ours')) {
      const plain = JSON.parse(JSON.stringify(eventOf(one, 'A', START)))
      expect(paypal.check('webhooks', 'event', plain)).toBeUndefined()
      if (one.type.startsWith(BILLING))
        expect(paypal.check('subscriptions', 'subscription', plain.resource)).toBeUndefined()
    }
})

test.each(['BILLING.SUBSCRIPTION.HIBERNATED', 'PAYMENT.SALE.FORGIVEN', 'constructor'])(
  'a PayPal event of the unknown type %s is answered with 200 and ignored',
  async (type) => {
    const row = await createPendingSubscription(testTenant, { providerKind: 'paypal' })
    const { resource } = billing('UPDATED', 'HIBERNATING', 'paypal_unknown', row._id)
    expect(await send({ type, resource }, type, START)).toBe('ignored')
    expect(await findSubscription(testTenant, row)).toEqual(row)
  },
)
