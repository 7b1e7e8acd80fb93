import { expect } from 'bun:test'
import { eq, sql } from 'drizzle-orm'
import { moveClock, now } from '../../../src/core/clock'
import { events } from '../../../src/jobs/tables'
import { providerOf } from '../../../src/payments/providers'
import { decide } from '../../../src/payments/subscriptions/decision'
import type { Effect } from '../../../src/payments/subscriptions/effects'
import {
  type ProviderEventRow,
  type ProviderKind,
  providerEvents,
  type Subscription,
} from '../../../src/payments/tables'
import { effectiveMeaning, toTransitionInput } from '../../../src/payments/webhooks/event-handler'
import { createPendingSubscription, findSubscription, invoicesOf, type TenantFixture } from './webhook-fixtures'

const DAY = 86_400
/** The time of the first event of a scenario, in seconds. */
export const START = Math.floor(Date.parse('2026-03-10T09:00:00Z') / 1000)
export const MONTH = { start: START, end: START + 31 * DAY }
export const YEAR = { start: START, end: START + 365 * DAY }
export const isoOf = (seconds: number) => new Date(seconds * 1000).toISOString()

export type Json = Record<string, unknown>
export type Span = typeof MONTH

/** What a row of a table expects of the subscription and of its invoices, in any order. */
export type Outcome = Partial<Subscription> & { invoices?: [status: string, amount: number, currency: string][] }

/** Events of a vendor, one second apart, and what they change. `before` is what the subscription is at first. */
export type Scenario<Sent, Shapes> = {
  title: string
  before?(external: string): Partial<Subscription>
  events(shapes: Shapes, external: string, ours: string): Sent[]
  becomes: Outcome
}

/** The fields of a subscription whose grace period has ended, while the vendor goes on collecting. */
export const lapsed = (externalSubscriptionId: string): Partial<Subscription> => ({
  ...{ status: 'lapsed', externalSubscriptionId, pastDueSince: isoOf(START - 10 * DAY) },
  ...{ currentPeriodStart: isoOf(START - 41 * DAY), currentPeriodEnd: isoOf(START - 10 * DAY) },
})
export const pastDue = (external: string): Partial<Subscription> => ({ ...lapsed(external), status: 'past_due' })
export const active = (externalSubscriptionId: string): Partial<Subscription> => ({
  ...{ status: 'active', externalSubscriptionId },
  ...{ currentPeriodStart: isoOf(MONTH.start), currentPeriodEnd: isoOf(MONTH.end) },
})
/** The fields of a subscription that costs nothing for its first month. */
export const freeAtFirst = (): Partial<Subscription> => ({
  discount: { type: 'percentage', percent: 100, benefit: { unit: 'months', value: 1 } },
  couponBenefitEndsAt: isoOf(MONTH.end),
})

export const ORDERS = ['in order', 'in reverse'] as const

let count = 0

/**
 * Sends the events of a scenario in an order, each twice, and expects its outcome. `send` delivers an event with a number
 * and a time in seconds, and returns the status of its receipt.
 */
export async function playScenario<Sent, Shapes>(
  testTenant: TenantFixture,
  providerKind: ProviderKind,
  shapes: Shapes,
  { before, events, becomes }: Scenario<Sent, Shapes>,
  order: (typeof ORDERS)[number],
  send: (one: Sent, id: string, seconds: number) => Promise<string>,
) {
  moveClock((START + 60) * 1000)
  const external = `${providerKind}_${count++}`
  const row = await createPendingSubscription(testTenant, { providerKind, ...before?.(external) })
  const sent = [...events(shapes, external, row._id).entries()]
  for (const [n, one] of order === 'in order' ? sent : sent.reverse())
    for (const receipt of [/^(processed|ignored)$/, /^duplicate$/])
      expect(await send(one, `evt_${external}_${n}`, START + n)).toMatch(receipt)
  const { invoices, ...fields } = becomes
  expect(await findSubscription(testTenant, row)).toMatchObject(fields)
  const stored = (await invoicesOf(testTenant, row)).map(([, ...rest]) => rest.join(' '))
  if (invoices) expect(stored.sort()).toEqual(invoices.map((one) => one.join(' ')).sort())
  await expectSameDecisions(testTenant, row)
}

/** Expects that decisions alone, without a database, make the same of a subscription, its invoices and its events. */
async function expectSameDecisions(testTenant: TenantFixture, before: Subscription) {
  const { db } = testTenant.tenant
  const { subscriptionId, _id } = providerEvents
  const rows = await db.select().from(providerEvents).where(eq(subscriptionId, before._id)).orderBy(_id)
  const { subscription, invoices, eventNames } = decideAll(before, rows)
  const { updated } = subscription
  expect(subscription).toEqual({ ...(await findSubscription(testTenant, before)), updated })
  const stored = await invoicesOf(testTenant, before)
  expect(invoices).toEqual(stored.map((one) => one.join(' ')).sort())
  const isOfSubscription = sql`${events.kind} = 'subscription' and ${events.metadata} like ${`%"${before._id}"%`}`
  const emitted = await db.select().from(events).where(isOfSubscription).orderBy(events.seq)
  expect(eventNames).toEqual(emitted.map(({ eventName }) => eventName))
}

/** Returns what decisions make of a subscription when these events come, one after the other. */
function decideAll(before: Subscription, rows: ProviderEventRow[]) {
  let subscription = before
  const effects: Effect[] = []
  for (const row of rows.filter(({ outcome }) => outcome !== 'The checkout of this event is obsolete.')) {
    const event = providerOf(row.providerKind).parseEvent(new TextEncoder().encode(row.body))
    const meaning = effectiveMeaning(subscription, event)
    const input = { ...toTransitionInput(subscription, row, event, new Set([row.source!])), meaning }
    const isOwner = event.externalSubscriptionId === subscription.externalSubscriptionId
    const facts = { time: now(), others: [], ...(isOwner && { owner: subscription }) }
    const decision = decide(subscription, input, facts)
    subscription = decision.next
    effects.push(...decision.effects)
  }
  const invoices = listInvoices(effects)
  const eventNames = effects.flatMap((effect) => (effect.kind === 'emit event' ? effect.eventName : []))
  return { subscription, invoices, eventNames }
}

/** Returns the provider id, status, amount and currency of the invoices that effects save. */
function listInvoices(effects: Effect[]) {
  const saved = new Map<string, Extract<Effect, { kind: 'save invoice' }>['invoice']>()
  for (const effect of effects)
    if (effect.kind === 'save invoice') {
      const { externalInvoiceId: id, status } = effect.invoice
      const known = saved.get(id)
      if (!known || (known.status === 'open' && status !== 'open')) saved.set(id, effect.invoice)
    } else if (effect.kind === 'void placeholder invoices') {
      const { isPlaceholderInvoice } = providerOf(effect.providerKind)
      for (const [id, invoice] of saved)
        if (invoice.status === 'open' && isPlaceholderInvoice?.(id, effect.subscription))
          saved.set(id, { ...invoice, status: 'void' })
    }
  return [...saved]
    .map(([id, { status, amount, currency }]) => [id, status, amount, currency.toUpperCase()].join(' '))
    .sort()
}
