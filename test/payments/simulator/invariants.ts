import { expect } from 'bun:test'
import { addSpan, cycleSpan } from '../../../src/payments/billing-period'
import { priceOf } from '../../../src/payments/subscriptions/serializer'
import { type Status, TRANSITIONS } from '../../../src/payments/subscriptions/transitions'
import { invoices, type Subscription, subscriptions } from '../../../src/payments/tables'
import type { Db, Tx } from '../../../src/storage/port'
import type { World } from './provider-worlds'

type StoredStatus = [id: string, status: Status, entity: string, external: string | null, conflict: string | null]
const statusesIn = async (tx: Tx) =>
  (await tx.query(
    'select _id, status, billable_entity_id, external_subscription_id, conflict from subscriptions',
  )) as StoredStatus[]

/**
 * Runs a write; each change of a status has to be in the table, and an entity has one active subscription at most. What is
 * in force goes on with its subscription at the provider, and time does not end what waits for an admin. What does not hold
 * is given to `onBroken` too, because a job that throws is only tried again.
 */
export async function checkWrites(tx: Tx, work: (tx: Tx) => Promise<unknown>, onBroken: (error: unknown) => void) {
  const check = (expectations: () => void) => {
    try {
      expectations()
    } catch (error) {
      onBroken(error)
      throw error
    }
  }
  const stored = await statusesIn(tx)
  const current = new Map(stored.map(([id, status]) => [id, status]))
  const previous = new Map(stored.map((row) => [row[0], row]))
  const query: Tx['query'] = async (text, params) => {
    const rows = await tx.query(text, params)
    if (/^update "?subscriptions/.test(text))
      for (const [id, status, , external] of await statusesIn(tx)) {
        const [, old, , oldExternal, oldConflict] = previous.get(id) ?? []
        const before = current.get(id) ?? 'pending'
        check(() => {
          if (oldConflict) expect([id, ENDS_BY_TIME.includes(status) && status !== old]).toEqual([id, false])
          if (oldExternal && (old === 'active' || old === 'trialing')) expect([id, external]).toEqual([id, oldExternal])
          if (before !== status) expect(Object.values(TRANSITIONS[before])).toContain(status)
        })
        current.set(id, status)
      }
    return rows
  }
  await work(override(tx, { query }))
  const activeEntities = new Set<string>()
  const left = await statusesIn(tx)
  check(() => {
    for (const [id, status, entity] of left) {
      expect([id, status]).toEqual([id, current.get(id) ?? 'pending'])
      if (!isAlive(status)) continue
      expect(activeEntities.has(entity), 'an entity has one active subscription at most').toBeFalse()
      activeEntities.add(entity)
    }
  })
}

const ENDS_BY_TIME: Status[] = ['abandoned', 'lapsed']

const isAlive = (status: string) => ['active', 'trialing', 'past_due'].includes(status)

const override = <Thing extends object>(thing: Thing, overrides: Partial<Thing>): Thing =>
  new Proxy(thing, { get: (_, key) => Reflect.get(key in overrides ? overrides : thing, key) })

/** Expects that redemption counts are exact and within their limits, and that each invoice of a provider is stored once. */
export async function expectConsistentCounts(db: Db) {
  const coupons = await db.query(
    `select current_redemptions, max_redemptions, (select count(*) from redemptions where coupon = coupons._id) from coupons`,
  )
  for (const [current, most, counted] of coupons.map((row) => row.map(Number))) {
    expect(current).toBe(counted!)
    expect(current).toBeLessThanOrEqual(most!)
  }
  const duplicates = await db.query(
    'select external_invoice_id from invoices group by external_invoice_id having count(*) > 1',
  )
  expect(duplicates).toEqual([])
}

/** Expects the state of the provider, of which every event `isReported`. What is paid besides another subscription of its entity waits for an admin. */
export async function expectAgreement(
  db: Db,
  world: World,
  { settled, isReported = false }: { settled: boolean; isReported?: boolean },
) {
  const rows = new Map((await db.select().from(subscriptions)).map((row) => [row._id, row]))
  const storedInvoices = await db.select().from(invoices)
  const truths = world.truths()
  const waits = ({ conflict }: Subscription) => conflict !== null
  const owed = truths.flatMap((one) => Object.keys(one.invoices).filter((id) => one.invoices[id] === 'open'))
  for (const truth of truths) {
    const row = rows.get(truth.ours)
    const isLinked = row?.externalSubscriptionId === truth.id
    if (!row || !isLinked) {
      // What its provider ended stays so: what else is paid for it is left to an admin.
      if (row?.endedBy === 'provider') continue
      expect([truth.id, isAlive(truth.status)]).toEqual([truth.id, row ? waits(row) && isAlive(truth.status) : false])
      continue
    }
    if (truth.status === 'waiting' || waits(row)) continue
    const ours = isAlive(row.status) || row.status === 'paused' ? row.status : 'ended'
    expect([row._id, ours]).toEqual([row._id, truth.status])
    const own = storedInvoices.filter(({ subscriptionId }) => subscriptionId === row._id)
    const paid = (list: [string, string][]) => list.flatMap(([id, status]) => (status === 'paid' ? [id] : [])).sort()
    const theirs = Object.entries(truth.invoices)
    expect(paid(own.map(({ externalInvoiceId, status }) => [externalInvoiceId, status]))).toEqual(
      expect.arrayContaining(paid(theirs)),
    )
    for (const { externalInvoiceId, status } of own)
      if (truth.invoices[externalInvoiceId])
        expect([externalInvoiceId, status]).toEqual([externalInvoiceId, truth.invoices[externalInvoiceId]])
    // What is in force owes nothing but what the provider collects. A lost event may leave the try of another checkout.
    for (const { externalInvoiceId, status } of isReported && truth.status === 'active' ? own : [])
      if (status === 'open') expect(owed).toContain(externalInvoiceId)
    if (isAlive(row.status)) expect([row._id, priceOf(row)]).toEqual([row._id, truth.price])
  }
  const externalIds = new Set(truths.map(({ id }) => id))
  for (const row of rows.values()) {
    // A subscription that was free at its start has no provider.
    if (isAlive(row.status) && row.externalSubscriptionId) expect(externalIds).toContain(row.externalSubscriptionId)
  }
  const unpaid = [...rows.values()].filter((row) => row.status === 'pending' && !waits(row))
  if (settled) expect(unpaid).toEqual([])
}

/** A subscription at the provider that was paid and then canceled because another one was in force. */
export type Surplus = { id: string; at: number }

/** Expects that admins were told once of each payment for a surplus, and of none for what is in force. */
export async function expectOfferedRefunds(db: Db, world: World, surplus: Surplus[]) {
  const told = await db.query(`select metadata from events where event_name = 'refund-offered'`)
  const offered = told.map(([metadata]) => {
    const { subscriptionId, externalInvoiceId } = JSON.parse(metadata as string)
    return { subscriptionId: subscriptionId as string, externalInvoiceId: externalInvoiceId as string }
  })
  const rows = new Map((await db.select().from(subscriptions)).map((row) => [row._id, row]))
  const ids = offered.filter(({ subscriptionId }) => rows.has(subscriptionId)).map((one) => one.externalInvoiceId)
  expect(ids).toEqual([...new Set(ids)])
  const stored = new Map((await db.select().from(invoices)).map((invoice) => [invoice.externalInvoiceId, invoice]))
  for (const truth of world.truths()) {
    const row = rows.get(truth.ours)
    const paid = Object.keys(truth.invoices).filter((id) => truth.invoices[id] === 'paid')
    if (row && isAlive(row.status) && row.externalSubscriptionId === truth.id)
      for (const id of paid) expect(ids, 'a refund was offered for what is in force').not.toContain(id)
    const canceled = surplus.find(({ id }) => id === truth.id)
    for (const id of canceled ? paid : []) {
      const invoice = stored.get(id)
      expect([id, invoice?.status]).toEqual([id, 'paid'])
      const { amount, paidAt, periodEnd } = invoice!
      const end = periodEnd ? Date.parse(periodEnd) : addSpan(Date.parse(paidAt!), cycleSpan('monthly'))
      if (amount && end > canceled!.at) expect(ids, 'no refund was offered for what was paid twice').toContain(id)
    }
  }
}
