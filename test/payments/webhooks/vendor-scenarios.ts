import { expect } from 'bun:test'
import { moveClock } from '../../../src/core/clock'
import type { ProviderKind, Subscription } from '../../../src/payments/tables'
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
}
