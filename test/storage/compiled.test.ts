import { expect, test } from 'bun:test'
import { eq, sql } from 'drizzle-orm'
import { iso, now } from '../../src/core/clock'
import { invoices } from '../../src/payments/tables'
import { compiled, rowsOf } from '../../src/storage/compiled'
import { house, refusal } from '../house'

const rows = rowsOf(invoices)
const named = compiled((tx) =>
  tx
    .select()
    .from(invoices)
    .where(eq(invoices._id, sql.placeholder('_id'))),
)

const row = (more: object = {}) => ({
  ...{
    _id: Bun.randomUUIDv7() as string,
    subscriptionId: 's',
    billableEntityType: 'user' as const,
    billableEntityId: 'u',
  },
  ...{ amount: 2000, currency: 'USD', status: 'open' as const, providerKind: 'stripe' as const },
  ...{
    externalInvoiceId: crypto.randomUUID() as string,
    invoiceUrl: null,
    paidAt: null,
    periodStart: iso(now()),
    periodEnd: null,
  },
  ...{ items: [{ description: "it's", quantity: 1, amount: 2000 }], created: iso(now()), updated: iso(now()) },
  ...more,
})

test('what is built once puts in and finds what it is given each time, and nothing stays nothing', async () => {
  const [{ tenant }, { tenant: other }] = [await house(), await house()]
  const [one, two] = [row(), row({ paidAt: iso(now()), invoiceUrl: '' })]
  for (const each of [one, two]) await tenant.write((tx) => rows.insert(tx, each))
  expect(await named(tenant.db, { _id: one._id })).toEqual([one])
  expect(await named(tenant.db, { _id: two._id })).toEqual([two])
  const changed = { ...two, paidAt: null, items: [], amount: 5 }
  await tenant.write((tx) => rows.update(tx, changed))
  expect(await named(tenant.db, { _id: two._id })).toEqual([changed])
  expect(await named(tenant.db, { _id: one._id })).toEqual([one])
  expect(await named(other.db, { _id: one._id })).toEqual([])
  const failed = tenant.write((tx) => rows.insert(tx, row({ invoiceUrl: '\0' })))
  expect(refusal({ status: 400, headers: new Headers(), body: await failed.catch((error) => error) })).toEqual([
    400,
    'INVALID_INPUT',
  ])
})
