import { and, eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { notFound } from '../../core/problem'
import { applyPage, type GrowingListQuery, parsePage, toGrowingListPage } from '../../storage/pagination'
import { callerEntityFilter, requireOwn } from '../billable-entity'
import { filterByParameter } from '../list-filter'
import { fromMinorUnits } from '../money'
import type { Invoice as InvoiceResponse } from '../shapes'
import { type Invoice, invoices } from '../tables'

const { _id, status, amount, subscriptionId, billableEntityType, billableEntityId, paidAt, created, updated } = invoices
const sortable = { _id, status, amount, subscriptionId, paidAt, created, updated }

type Filters = { billableEntityType?: string; billableEntityId?: string; subscriptionId?: string; status?: string }

/** Returns a page of invoices, newest first: all for admins, else those of the caller's entity. */
export async function list(ctx: Ctx, query: Filters & GrowingListQuery) {
  const { db } = ctx
  const page = parsePage(query, sortable)
  // Only admins may choose the entity. Everyone may filter by status.
  const filters: Filters = { ...query, ...callerEntityFilter(ctx) }
  const where = and(
    filterByParameter(billableEntityType, filters, 'billableEntityType', ['user', 'workspace']),
    filterByParameter(billableEntityId, filters, 'billableEntityId'),
    filterByParameter(subscriptionId, filters, 'subscriptionId'),
    filterByParameter(status, filters, 'status', ['paid', 'open', 'void']),
  )
  const rows = await applyPage(page, db.select().from(invoices).where(and(where, page.after)))
  return toGrowingListPage(page, rows, () => db.$count(invoices, where), toInvoice)
}

/** Returns an invoice. @throws 404 INVOICE_NOT_FOUND, 403 when it belongs to another entity */
export async function get(ctx: Ctx, id: string): Promise<InvoiceResponse> {
  const row = await ctx.db.select().from(invoices).where(eq(_id, id)).get()
  return toInvoice(requireOwn(ctx, row ?? notFound('invoice')))
}

const toInvoice = ({ amount, items, refundOffered: _, ...invoice }: Invoice): InvoiceResponse => ({
  ...invoice,
  amount: fromMinorUnits(amount, invoice.currency),
  items: items.map((item) => ({ ...item, amount: fromMinorUnits(item.amount, invoice.currency) })),
})
