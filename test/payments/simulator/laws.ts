import { expect } from 'bun:test'
import { moves, type Status } from '../../../src/payments/subscriptions/moves'
import { priceOf } from '../../../src/payments/subscriptions/shown'
import { invoices, type Subscription, subscriptions } from '../../../src/payments/tables'
import type { Db, Tx } from '../../../src/storage/port'
import type { World } from './vendors'

const statusesIn = async (tx: Tx) =>
  (await tx.ask('select _id, status, billable_entity_id from subscriptions')) as [string, Status, string][]

/** Looks at each update of a status, and at all that a write leaves: moves are those of the table, and one is paid or to be. */
export async function watched(tx: Tx, work: (tx: Tx) => Promise<unknown>) {
  const current = new Map((await statusesIn(tx)).map(([id, status]) => [id, status]))
  const ask: Tx['ask'] = async (text, params) => {
    const rows = await tx.ask(text, params)
    if (/^update "?subscriptions/.test(text))
      for (const [id, status] of await statusesIn(tx)) {
        const before = current.get(id) ?? 'pending'
        if (before !== status) expect(Object.values(moves[before])).toContain(status)
        current.set(id, status)
      }
    return rows
  }
  await work(instead(tx, { ask }))
  const held = new Set<string>()
  for (const [id, status, entity] of await statusesIn(tx)) {
    expect([id, status]).toEqual([id, current.get(id) ?? 'pending'])
    if (!alive(status)) continue
    expect(held.has(entity), 'of an entity there is one').toBeFalse()
    held.add(entity)
  }
}

const alive = (status: string) => ['active', 'trialing', 'past_due'].includes(status)

const instead = <Thing extends object>(thing: Thing, some: Partial<Thing>): Thing =>
  new Proxy(thing, { get: (_, key) => Reflect.get(key in some ? some : thing, key) })

/** Redemptions are as many as were counted, and no more than there may be; each invoice of a provider is there once. */
export async function countsOf(db: Db) {
  const coupons = await db.ask(
    `select current_redemptions, max_redemptions, (select count(*) from redemptions where coupon = coupons._id) from coupons`,
  )
  for (const [current, most, counted] of coupons.map((row) => row.map(Number))) {
    expect(current).toBe(counted!)
    expect(current).toBeLessThanOrEqual(most!)
  }
  const twice = await db.ask(
    'select external_invoice_id from invoices group by external_invoice_id having count(*) > 1',
  )
  expect(twice).toEqual([])
}

/** What is here is what the provider has. Who has paid for a second subscription of an entity waits, until all has `settled`. */
export async function agreement(db: Db, world: World, { settled }: { settled: boolean }) {
  const rows = new Map((await db.select().from(subscriptions)).map((row) => [row._id, row]))
  const kept = await db.select().from(invoices)
  const truths = world.truths()
  const waits = ({ _id, status, billableEntityId: id }: Subscription) =>
    status === 'pending' &&
    !settled &&
    [...rows.values()].some((other) => other._id !== _id && other.billableEntityId === id && alive(other.status))
  for (const truth of truths) {
    const row = rows.get(truth.ours)
    const goesBy = row?.externalSubscriptionId === truth.id
    if (!row || !goesBy) {
      expect([truth.id, alive(truth.status)]).toEqual([truth.id, row ? waits(row) && alive(truth.status) : false])
      continue
    }
    if (truth.status === 'waiting' || waits(row)) continue
    const ours = alive(row.status) ? row.status : 'ended'
    expect([row._id, ours]).toEqual([row._id, truth.status])
    const own = kept.filter(({ subscriptionId }) => subscriptionId === row._id)
    const paid = (list: [string, string][]) => list.flatMap(([id, status]) => (status === 'paid' ? [id] : [])).sort()
    const theirs = Object.entries(truth.invoices)
    expect(paid(own.map(({ externalInvoiceId, status }) => [externalInvoiceId, status]))).toEqual(
      expect.arrayContaining(paid(theirs)),
    )
    for (const { externalInvoiceId, status } of own)
      if (truth.invoices[externalInvoiceId])
        expect([externalInvoiceId, status]).toEqual([externalInvoiceId, truth.invoices[externalInvoiceId]])
    if (alive(row.status)) expect([row._id, priceOf(row)]).toEqual([row._id, truth.price])
  }
  const known = new Set(truths.map(({ id }) => id))
  for (const row of rows.values()) {
    // What was for nothing when it began has no provider.
    if (alive(row.status) && row.externalSubscriptionId) expect(known).toContain(row.externalSubscriptionId)
  }
  if (settled) expect([...rows.values()].filter(({ status }) => status === 'pending')).toEqual([])
}
