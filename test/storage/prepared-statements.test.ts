import { expect, test } from 'bun:test'
import { eq, sql } from 'drizzle-orm'
import { now, toIsoString } from '../../src/core/clock'
import { invoices } from '../../src/payments/tables'
import { createRowWriter, prepareQuery } from '../../src/storage/prepared-statements'
import { createTestTenant, statusAndCode } from '../test-tenant'

const invoiceWriter = createRowWriter(invoices)
const findInvoice = prepareQuery((tx) =>
  tx
    .select()
    .from(invoices)
    .where(eq(invoices._id, sql.placeholder('_id'))),
)

const createInvoiceRow = (more: object = {}) => ({
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
    periodStart: toIsoString(now()),
    periodEnd: null,
  },
  ...{
    items: [{ description: "it's", quantity: 1, amount: 2000 }],
    created: toIsoString(now()),
    updated: toIsoString(now()),
    refundOffered: null,
  },
  ...more,
})

test('prepared writers and queries use the values of each call, keep null and refuse U+0000 with INVALID_INPUT', async () => {
  const [{ tenant }, { tenant: other }] = [await createTestTenant(), await createTestTenant()]
  const [one, two] = [createInvoiceRow(), createInvoiceRow({ paidAt: toIsoString(now()), invoiceUrl: '' })]
  for (const each of [one, two]) await tenant.write((tx) => invoiceWriter.insert(tx, each))
  expect(await findInvoice(tenant.db, { _id: one._id })).toEqual([one])
  expect(await findInvoice(tenant.db, { _id: two._id })).toEqual([two])
  const changed = { ...two, paidAt: null, items: [], amount: 5 }
  await tenant.write((tx) => invoiceWriter.update(tx, changed))
  expect(await findInvoice(tenant.db, { _id: two._id })).toEqual([changed])
  expect(await findInvoice(tenant.db, { _id: one._id })).toEqual([one])
  expect(await findInvoice(other.db, { _id: one._id })).toEqual([])
  const failed = tenant.write((tx) => invoiceWriter.insert(tx, createInvoiceRow({ invoiceUrl: '\0' })))
  expect(statusAndCode({ status: 400, headers: new Headers(), body: await failed.catch((error) => error) })).toEqual([
    400,
    'INVALID_INPUT',
  ])
})
