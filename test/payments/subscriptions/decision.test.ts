import { describe, expect, test } from 'bun:test'
import { decide } from '../../../src/payments/subscriptions/decision'
import type { Effect } from '../../../src/payments/subscriptions/effects'
import type { Decision, Facts, TransitionEvent } from '../../../src/payments/subscriptions/transition-input'
import { type Status, TRANSITIONS, type Trigger } from '../../../src/payments/subscriptions/transitions'
import type { Subscription } from '../../../src/payments/tables'
import { pendingSubscription } from '../webhooks/webhook-fixtures'

// Nothing here has a database, a tenant or a clock.

const TIME = Date.parse('2026-03-10T09:00:00.000Z')
const DAY = 86_400_000
const isoOf = (ms: number) => new Date(ms).toISOString()
const sold = { providerKind: 'stripe', providerSourceId: 'source_1', externalSubscriptionId: 'sub_1' } as const
const period = { currentPeriodStart: isoOf(TIME - 20 * DAY), currentPeriodEnd: isoOf(TIME + 10 * DAY) }
const pending = (more: Partial<Subscription> = {}) => pendingSubscription({ checkoutAmount: 2000, ...more })
const active = (more: Partial<Subscription> = {}) => pending({ status: 'active', ...sold, ...period, ...more })
const pastDue = (more: Partial<Subscription> = {}) =>
  active({ status: 'past_due', pastDueSince: isoOf(TIME - DAY), ...more })
const coupon = { couponId: 'coupon_1', couponCode: 'HALF', discount: { type: 'percentage', percent: 50 } } as const
const withCoupon: Partial<Subscription> = {
  ...coupon,
  discount: { ...coupon.discount, benefit: { unit: 'months', value: 1 } },
  checkoutAmount: 1000,
}
const invoice = { externalInvoiceId: 'in_1', amount: 2000, currency: 'usd' }
const reported = { occurredAt: TIME, ...sold }

const factsOf = (more: Partial<Facts> = {}): Facts => ({ time: TIME, others: [], ...more })
/** Returns the kinds of effects, with the names of events and the statuses of invoices. */
const kindsOf = ({ effects }: Decision) =>
  effects.map((effect: Effect) => {
    if (effect.kind === 'emit event') return effect.eventName
    return effect.kind === 'save invoice' ? `${effect.kind}: ${effect.invoice.status}` : effect.kind
  })

type Situation = {
  title: string
  before: Subscription
  event: TransitionEvent
  facts?: Partial<Facts>
  becomes: [Decision['outcome'], Partial<Subscription>]
  effects: string[]
}

const SITUATIONS: Situation[] = [
  {
    title: 'a first payment',
    before: pending(),
    event: { ...reported, meaning: 'paid', invoice },
    becomes: ['applied', { status: 'active', externalSubscriptionId: 'sub_1', currentPeriodStart: isoOf(TIME) }],
    effects: [
      'save invoice: paid',
      'save subscription',
      'subscription-activated',
      'schedule check',
      'retry parked events',
      'void placeholder invoices',
    ],
  },
  {
    title: 'a renewal',
    before: active(),
    event: { ...reported, meaning: 'paid', invoice, periodEnd: TIME + 40 * DAY },
    becomes: ['applied', { status: 'active', currentPeriodEnd: isoOf(TIME + 40 * DAY) }],
    effects: ['save invoice: paid', 'save subscription', 'subscription-renewed', 'void placeholder invoices'],
  },
  {
    title: 'a failed payment',
    before: active(),
    event: { ...reported, meaning: 'payment failed', invoice },
    becomes: ['applied', { status: 'past_due', pastDueSince: isoOf(TIME) }],
    effects: ['save invoice: open', 'save subscription', 'subscription-past-due', 'schedule check'],
  },
  {
    title: 'a failed payment of what was never reported as active',
    before: pending(),
    event: { ...reported, meaning: 'payment failed', status: 'past_due', invoice },
    becomes: ['applied', { status: 'past_due', pastDueSince: isoOf(TIME) }],
    effects: [
      'save invoice: open',
      'save subscription',
      'subscription-activated',
      'schedule check',
      'save subscription',
      'subscription-past-due',
      'schedule check',
      'retry parked events',
    ],
  },
  {
    title: 'a cancellation on request',
    before: active(),
    event: { meaning: 'canceled', endedBy: 'request', by: 'user_1' },
    becomes: ['applied', { status: 'canceled', endedBy: 'request' }],
    effects: ['save subscription', 'subscription-canceled', 'void placeholder invoices'],
  },
  {
    title: 'a coupon that is redeemed',
    before: pending(withCoupon),
    event: { ...reported, meaning: 'activated' },
    facts: { redemption: 'left' },
    becomes: ['applied', { couponId: 'coupon_1', couponBenefitEndsAt: isoOf(Date.parse('2026-04-10T09:00:00.000Z')) }],
    effects: [
      'redeem coupon',
      'coupon-redeemed',
      'save subscription',
      'subscription-activated',
      'schedule check',
      'send price',
      'retry parked events',
    ],
  },
  {
    title: 'a coupon that was redeemed before',
    before: pending(withCoupon),
    event: { ...reported, meaning: 'activated' },
    facts: { redemption: 'redeemed' },
    becomes: ['applied', { couponId: 'coupon_1', couponBenefitEndsAt: null }],
    effects: ['save subscription', 'subscription-activated', 'schedule check', 'retry parked events'],
  },
  {
    title: 'a coupon that is lost',
    before: pending(withCoupon),
    event: { ...reported, meaning: 'activated' },
    facts: { redemption: 'none left' },
    becomes: ['applied', { status: 'active', couponId: null, discount: null }],
    effects: [
      'coupon-lost',
      'save subscription',
      'subscription-activated',
      'schedule check',
      'send price',
      'retry parked events',
    ],
  },
  {
    title: 'a payment besides an overdue subscription',
    before: pending(),
    event: { ...reported, meaning: 'activated' },
    facts: { others: [pastDue({ externalSubscriptionId: 'sub_0' })] },
    becomes: ['applied', { status: 'active' }],
    effects: [
      'save subscription',
      'subscription-activated',
      'schedule check',
      'save subscription',
      'subscription-canceled',
      'schedule check',
      'retry parked events',
    ],
  },
  {
    title: 'an end while another subscription waits',
    before: active(),
    event: { ...reported, meaning: 'canceled' },
    facts: { others: [pending({ conflict: { subscriptionId: 'x', since: isoOf(TIME) } })] },
    becomes: ['applied', { status: 'canceled', endedBy: 'provider' }],
    effects: ['save subscription', 'subscription-canceled', 'schedule check', 'void placeholder invoices'],
  },
  {
    title: 'a second checkout that was paid after the first was overdue',
    before: pastDue(),
    event: { ...reported, meaning: 'paid', externalSubscriptionId: 'sub_2', invoice },
    becomes: ['applied', { status: 'active', externalSubscriptionId: 'sub_2' }],
    effects: [
      'save invoice: paid',
      'save subscription',
      'subscription-activated',
      'cancel at provider',
      'send price',
      'retry parked events',
      'void placeholder invoices',
    ],
  },
  {
    title: 'a payment besides a subscription in force',
    before: pending(),
    event: { ...reported, meaning: 'paid', invoice },
    facts: { others: [active({ _id: 'other', externalSubscriptionId: 'sub_0' })] },
    becomes: ['refused', { status: 'pending', conflict: { subscriptionId: 'other', since: isoOf(TIME) } }],
    effects: [
      'save invoice: paid',
      'save subscription',
      'schedule check',
      'subscription-conflict',
      'webhook-failed',
      'retry parked events',
      'void placeholder invoices',
    ],
  },
  {
    title: 'a payment after an end on request',
    before: active({ status: 'canceled', endedBy: 'request', updated: isoOf(TIME - DAY) }),
    event: { ...reported, meaning: 'paid', invoice },
    becomes: ['refused', { status: 'canceled' }],
    effects: [
      'save invoice: paid',
      'schedule check',
      'webhook-failed',
      'offer refund',
      'cancel at provider',
      'void placeholder invoices',
    ],
  },
  {
    title: 'an event about what another subscription has',
    before: pending(),
    event: { ...reported, meaning: 'activated' },
    facts: { owner: active() },
    becomes: ['refused', { status: 'pending', externalSubscriptionId: null }],
    effects: ['webhook-failed'],
  },
  {
    title: 'an outdated payment',
    before: active({ lastEventAt: TIME + 1 }),
    event: { ...reported, meaning: 'paid', invoice },
    becomes: ['stale', { status: 'active', currentPeriodEnd: period.currentPeriodEnd }],
    effects: ['save invoice: paid', 'void placeholder invoices'],
  },
  {
    title: 'an invoice that is given up',
    before: pastDue(),
    event: { ...reported, meaning: 'voided', invoice },
    becomes: ['applied', { status: 'past_due' }],
    effects: ['save invoice: void'],
  },
]

describe('decisions', () => {
  test.each(SITUATIONS)(
    '$title is decided with its effects in their order',
    ({ before, event, facts, ...expected }) => {
      const decision = decide(before, event, factsOf(facts))
      const [outcome, fields] = expected.becomes
      expect(decision.outcome).toBe(outcome)
      expect(decision.next).toMatchObject(fields)
      expect(kindsOf(decision)).toEqual(expected.effects)
    },
  )

  test('decisions follow exactly the table, and save what they change once', () => {
    const triggers = [...new Set(Object.values(TRANSITIONS).flatMap((row) => Object.keys(row)))] as Trigger[]
    for (const from of Object.keys(TRANSITIONS) as Status[])
      for (const meaning of triggers) {
        const decision = decide(pending({ status: from }), { meaning, occurredAt: TIME }, factsOf())
        const to = TRANSITIONS[from][meaning]
        const stays = from === 'paused' && meaning === 'payment failed'
        // Without a provider, nobody has to confirm an end.
        const status = stays ? from : to === 'lapsed' ? 'canceled' : (to ?? from)
        const saved = kindsOf(decision).filter((kind) => kind === 'save subscription')
        const actual = { status: decision.next.status, outcome: decision.outcome, saved: saved.length }
        const expected = { status, outcome: to ? 'applied' : 'refused', saved: to ? 1 : 0 } as const
        expect(actual, `${from} ${meaning}`).toEqual(expected)
      }
  })

  test('decisions change neither the subscription nor the facts that they get', () => {
    for (const { before, event, facts } of SITUATIONS) {
      const given = structuredClone({ before, event, facts: factsOf(facts) })
      const copy = structuredClone(given)
      decide(given.before, given.event, given.facts)
      expect(given).toEqual(copy)
    }
  })
})
