import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import fc from 'fast-check'
import type { TransitionInput } from '../../../src/payments/subscriptions/transition-input'
import {
  ACTIVE_STATUSES,
  SHOWN_STATUSES,
  type Status,
  shownStatus,
  TRANSITIONS,
  type Trigger,
} from '../../../src/payments/subscriptions/transitions'
import { subscriptions } from '../../../src/payments/tables'
import { FORBIDDEN, ID, TIME, UNAUTHENTICATED } from '../../expectations'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../../property-runner'
import { statusAndCode } from '../../test-tenant'
import { createPaymentsFixture, expectOk } from '../fixtures'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)
const at = await createPaymentsFixture()
const { admin } = at

const OCCURRED_AT = Date.parse('2026-03-10T08:00:00.000Z')
const DAY = 86_400_000
const row = async (id: string) => expectOk(admin.get(`/subscriptions/${id}`))
const createPending = async () => {
  const client = await at.createCustomer()
  const { _id } = await expectOk(client.post('/subscriptions', { planId: at.pro, billingCycle: 'monthly' }))
  return { id: _id as string, client }
}
/** Creates a subscription that has been active since OCCURRED_AT, for a month. */
async function createActive() {
  const one = await createPending()
  await at.applyTrigger(one.id, 'activated', {
    occurredAt: OCCURRED_AT,
    externalSubscriptionId: `sub_${one.id}`,
    providerKind: 'stripe',
  })
  return one
}

describe('the transition table', () => {
  test('the transition table contains every status, and no transition leaves canceled or expired', () => {
    const statuses = Object.keys(TRANSITIONS) as Status[]
    expect([...SHOWN_STATUSES].sort()).toEqual(['active', 'canceled', 'expired', 'past_due', 'pending', 'trialing'])
    expect(statuses.filter((status) => shownStatus({ status }) !== status)).toEqual(['abandoned', 'paused', 'lapsed'])
    expect([TRANSITIONS.canceled, TRANSITIONS.expired]).toEqual([{}, {}])
    for (const from of statuses) for (const to of Object.values(TRANSITIONS[from])) expect(statuses).toContain(to)
    expect(statuses.filter((from) => Object.values(TRANSITIONS[from]).includes('pending'))).toEqual(['pending'])
  })

  test('transition applies exactly the table for every status and trigger, and refuses the rest', async () => {
    const triggers = [...new Set(Object.values(TRANSITIONS).flatMap((row) => Object.keys(row)))] as Trigger[]
    for (const from of Object.keys(TRANSITIONS) as Status[])
      for (const trigger of triggers) {
        const { id } = await createPending()
        await at.tenant.write((tx) => tx.update(subscriptions).set({ status: from }).where(eq(subscriptions._id, id)))
        const { outcome } = await at.applyTrigger(id, trigger, { occurredAt: OCCURRED_AT })
        const to = TRANSITIONS[from][trigger]
        // A paused subscription is overdue only if its provider says so.
        const stays = from === 'paused' && trigger === 'payment failed'
        // Without a provider, nobody has to confirm an end.
        const status = stays ? from : to === 'lapsed' ? 'canceled' : (to ?? from)
        const expected = [shownStatus({ status }), to ? 'applied' : 'refused']
        expect([await at.status(id), outcome] as string[], `${from} ${trigger}`).toEqual(expected)
      }
  })

  test('any history keeps at most one subscription active, never leaves a final status, and stores each invoice once', async () => {
    const eventArbitrary = fc.record({
      n: fc.nat(2),
      at: fc.nat(20),
      meaning: fc.constantFrom(
        ...([
          'activated',
          'trial',
          'updated',
          'paid',
          'payment failed',
          'paused',
          'canceled',
          'expired',
          'voided',
        ] as const),
      ),
      status: fc.constantFrom('active', 'trialing', 'past_due', 'paused', 'canceled', 'expired', undefined),
      invoice: fc.option(fc.record({ externalInvoiceId: fc.constantFrom('a', 'b', 'c'), amount: fc.nat(50) })),
    })
    await checkProperty(
      40,
      fc.asyncProperty(fc.array(eventArbitrary, { maxLength: 25 }), async (history) => {
        const client = await at.createCustomer()
        const ids: string[] = []
        for (let n = 0; n < 3; n++)
          ids.push((await expectOk(client.post('/subscriptions', { planId: at.pro, billingCycle: 'monthly' })))._id)
        const ended = new Map<string, Status>()
        for (const { n, at: time, meaning, status, invoice } of history) {
          const id = ids[n]!
          const before = await at.applyTrigger(id, 'voided')
          const more = invoice && {
            invoice: { ...invoice, externalInvoiceId: id + invoice.externalInvoiceId, currency: 'USD' },
          }
          const known = { externalSubscriptionId: `sub_${id}`, providerKind: 'stripe' } as const
          const { subscription: after, outcome } = await at.applyTrigger(id, meaning, {
            occurredAt: OCCURRED_AT + time,
            status,
            ...known,
            ...more,
          })
          const [from, to] = [before.subscription.status, after.status]
          // A past-due event implies that the subscription has started before.
          const steps =
            from === 'pending' && status === 'past_due'
              ? { ...TRANSITIONS.pending, ...TRANSITIONS.active }
              : TRANSITIONS[from]
          if (from !== to) expect(Object.values(steps)).toContain(to)
          if (outcome !== 'applied') expect(to).toBe(from)
          if (ended.has(id)) expect(to).toBe(ended.get(id)!)
          if (to === 'canceled' || to === 'expired') ended.set(id, to)
          if (from !== 'pending')
            expect(after.lastEventAt ?? 0).toBeGreaterThanOrEqual(before.subscription.lastEventAt ?? 0)
        }
        const rows = (await expectOk(client.get('/subscriptions'))) as { status: Status }[]
        expect(rows.filter(({ status }) => ACTIVE_STATUSES.includes(status)).length).toBeLessThanOrEqual(1)
        const invoices = (await expectOk(client.get('/invoices'))) as { externalInvoiceId: string }[]
        expect(new Set(invoices.map(({ externalInvoiceId }) => externalInvoiceId)).size).toBe(invoices.length)
      }),
    )
  })
})

describe('transitions by provider events', () => {
  test('an older event is stale, and one of the same moment is applied', async () => {
    const { id } = await createActive()
    await at.applyTrigger(id, 'payment failed', { occurredAt: OCCURRED_AT + 10 })
    expect((await at.applyTrigger(id, 'activated', { occurredAt: OCCURRED_AT + 9 })).outcome).toBe('stale')
    expect(await at.status(id)).toBe('past_due')
    await at.applyTrigger(id, 'activated', { occurredAt: OCCURRED_AT + 10 })
    expect(await at.status(id)).toBe('active')
  })

  test('an older start event still applies to a pending subscription', async () => {
    const { id } = await createPending()
    await at.applyTrigger(id, 'payment failed', { occurredAt: OCCURRED_AT + 10 })
    await at.applyTrigger(id, 'paid', {
      occurredAt: OCCURRED_AT + 20,
      invoice: { externalInvoiceId: `${id} 0`, amount: 0, currency: 'usd' },
    })
    expect(await at.status(id)).toBe('pending')
    await at.applyTrigger(id, 'trial', { occurredAt: OCCURRED_AT + 5, trialEndsAt: OCCURRED_AT + DAY })
    expect(await row(id)).toMatchObject({ status: 'trialing', trialEndsAt: '2026-03-11T08:00:00.000Z' })
  })

  test('the period of an event is stored, and a payment without one starts the next cycle once the period is over', async () => {
    const { id } = await createActive()
    const period = async () => {
      const { currentPeriodStart, currentPeriodEnd } = await row(id)
      return [currentPeriodStart.slice(0, 10), currentPeriodEnd.slice(0, 10)]
    }
    expect(await period()).toEqual(['2026-03-10', '2026-04-10'])
    // A payment within the period does not move it, and one after it starts the next.
    await at.applyTrigger(id, 'paid', { occurredAt: OCCURRED_AT + DAY })
    expect(await period()).toEqual(['2026-03-10', '2026-04-10'])
    await at.applyTrigger(id, 'paid', { occurredAt: OCCURRED_AT + 32 * DAY })
    expect(await period()).toEqual(['2026-04-10', '2026-05-10'])
    const [periodStart, periodEnd] = [Date.parse('2026-05-10'), Date.parse('2026-06-10')]
    await at.applyTrigger(id, 'paid', { occurredAt: OCCURRED_AT + 62 * DAY, periodStart, periodEnd })
    expect(await period()).toEqual(['2026-05-10', '2026-06-10'])
    // An invoice of an earlier period does not move it back.
    await at.applyTrigger(id, 'paid', {
      occurredAt: OCCURRED_AT + 63 * DAY,
      periodStart: OCCURRED_AT,
      periodEnd: OCCURRED_AT + DAY,
    })
    expect(await period()).toEqual(['2026-05-10', '2026-06-10'])
    await at.applyTrigger(id, 'updated', {
      occurredAt: OCCURRED_AT + 64 * DAY,
      status: 'active',
      cancelAtPeriodEnd: true,
    })
    expect([(await row(id)).cancelAtPeriodEnd, ...(await period())]).toEqual([true, '2026-05-10', '2026-06-10'])
    expect(await at.events()).toContain('subscription-renewed')
  })

  test('an event of another subscription of the provider is refused', async () => {
    const { id } = await createActive()
    const otherExternal = { externalSubscriptionId: 'sub_other', providerKind: 'stripe' } as const
    expect(await at.applyTrigger(id, 'canceled', { occurredAt: OCCURRED_AT + 1, ...otherExternal })).toMatchObject({
      outcome: 'refused',
    })
    expect(await at.status(id)).toBe('active')
    const { id: second } = await createPending()
    const usedExternal = { externalSubscriptionId: `sub_${id}`, providerKind: 'stripe' } as const
    expect(await at.applyTrigger(second, 'activated', { occurredAt: OCCURRED_AT, ...usedExternal })).toMatchObject({
      outcome: 'refused',
    })
    expect(await at.status(second)).toBe('pending')
  })

  test('a payment for an ended subscription is refused and reported as webhook-failed', async () => {
    const { id } = await createActive()
    await at.applyTrigger(id, 'canceled', { occurredAt: OCCURRED_AT + 1 })
    expect((await at.applyTrigger(id, 'activated', { occurredAt: OCCURRED_AT + 2 })).outcome).toBe('refused')
    const [event] = await expectOk(admin.get('/events?eventName=webhook-failed&limit=1'))
    expect(event.metadata).toMatchObject({ subscriptionId: id, trigger: 'activated' })
  })
})

describe('invoices', () => {
  const invoice = (id: string, more: object = {}): TransitionInput['invoice'] => ({
    ...{ externalInvoiceId: `in_${id}`, amount: 2000, currency: 'usd', invoiceUrl: 'https://pay.test/1' },
    ...{
      periodStart: OCCURRED_AT,
      periodEnd: OCCURRED_AT + 31 * DAY,
      items: [{ description: 'Pro', quantity: 1, amount: 2000 }],
    },
    ...more,
  })

  test('an invoice is stored once per provider id, and readable by its payer and admins of the tenant only', async () => {
    const { id, client } = await createActive()
    for (let n = 0; n < 3; n++)
      await at.applyTrigger(id, 'paid', { occurredAt: OCCURRED_AT + 1, invoice: invoice(id, { paidAt: OCCURRED_AT }) })
    const [stored, ...others] = await expectOk(client.get('/invoices'))
    expect(others).toEqual([])
    expect(stored).toEqual({
      ...{ _id: ID, subscriptionId: id, billableEntityType: 'user', billableEntityId: client.id, amount: 20 },
      ...{ currency: 'USD', status: 'paid', externalInvoiceId: `in_${id}`, providerKind: 'stripe' },
      ...{ invoiceUrl: 'https://pay.test/1', paidAt: '2026-03-10T08:00:00.000Z' },
      ...{
        periodStart: '2026-03-10T08:00:00.000Z',
        periodEnd: '2026-04-10T08:00:00.000Z',
        created: TIME,
        updated: TIME,
      },
      items: [{ description: 'Pro', quantity: 1, amount: 20 }],
    })
    expect(await expectOk(client.get(`/invoices/${stored._id}`))).toEqual(stored)
    expect(await expectOk(at.as('other').get('/invoices?billableEntityType=user'))).toEqual([])
    expect(statusAndCode(await at.as('other').get(`/invoices/${stored._id}`))).toEqual(FORBIDDEN)
    expect(statusAndCode(await at.anonymous.get('/invoices'))).toEqual(UNAUTHENTICATED)
    const find = async (query: string) =>
      (await expectOk(admin.get(`/invoices?billableEntityId=${client.id}&${query}`))).length
    expect([
      await find('status=paid'),
      await find('status=open,void'),
      await find('billableEntityType=workspace'),
    ]).toEqual([...[1, 0, 0]])
    for (const query of ['status=due', 'billableEntityType=team', 'sort=x'])
      expect(statusAndCode(await admin.get(`/invoices?${query}`))).toEqual([400, 'INVALID_INPUT'])
    expect((await expectOk(client.get('/invoices?status=paid'))).length).toBe(1)
    expect(await expectOk(client.get('/invoices?status=open,void'))).toEqual([])
    expect(statusAndCode(await client.get('/invoices?status=nonsense'))).toEqual([400, 'INVALID_INPUT'])
    expect((await expectOk(client.get('/invoices?billableEntityType=nonsense&billableEntityId=x'))).length).toBe(1)
    for (const unknown of ['x', '%00', Bun.randomUUIDv7()])
      expect(statusAndCode(await admin.get(`/invoices/${unknown}`))).toEqual([404, 'INVOICE_NOT_FOUND'])
    const foreign = await createPaymentsFixture()
    expect(statusAndCode(await foreign.admin.get(`/invoices/${stored._id}`))).toEqual([404, 'INVOICE_NOT_FOUND'])
  })

  test('an invoice that is paid or void stays so, whatever events follow', async () => {
    const { id, client } = await createActive()
    const statuses = async () =>
      (await expectOk(client.get('/invoices?sort=created'))).map(({ status }: { status: string }) => status)
    await at.applyTrigger(id, 'payment failed', { occurredAt: OCCURRED_AT + 5, invoice: invoice(id) })
    expect([await statuses(), await at.status(id)]).toEqual([['open'], 'past_due'])
    await at.applyTrigger(id, 'paid', { occurredAt: OCCURRED_AT + 6, invoice: invoice(id) })
    await at.applyTrigger(id, 'payment failed', { occurredAt: OCCURRED_AT + 5, invoice: invoice(id) })
    await at.applyTrigger(id, 'voided', { occurredAt: OCCURRED_AT + 7, invoice: invoice(id) })
    expect([await statuses(), await at.status(id)]).toEqual([['paid'], 'active'])
    // An invoice is stored even when its event is too old for the subscription.
    await at.applyTrigger(id, 'paid', { occurredAt: OCCURRED_AT + 1, invoice: invoice(`${id} late`) })
    await at.applyTrigger(id, 'payment failed', { occurredAt: OCCURRED_AT + 9, invoice: invoice(`${id} given up`) })
    await at.applyTrigger(id, 'voided', { occurredAt: OCCURRED_AT + 10, invoice: invoice(`${id} given up`) })
    await at.applyTrigger(id, 'paid', { occurredAt: OCCURRED_AT + 11, invoice: invoice(`${id} given up`) })
    expect(await statuses()).toEqual(['paid', 'paid', 'void'])
  })

  test('invoice amounts use the minor units of their currency', async () => {
    const { id, client } = await createActive()
    const items = [{ description: 'Pro', quantity: 1, amount: 1234 }]
    for (const currency of ['jpy', 'kwd'])
      await at.applyTrigger(id, 'paid', {
        occurredAt: OCCURRED_AT + 1,
        invoice: invoice(id + currency, { currency, amount: 1234, items }),
      })
    const amounts = (await expectOk(client.get('/invoices?sort=created'))).map(
      (one: { amount: number; items: { amount: number }[] }) => [one.amount, one.items[0]!.amount],
    )
    expect(amounts.sort()).toEqual([
      [1.234, 1.234],
      [1234, 1234],
    ])
  })
})
