import { and, eq, inArray } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../../accounts/guard'
import type { Answer } from '../../core/etag'
import { invalid, missing } from '../../core/problem'
import { answerGrowingPage, type GrowingListing, namesOf, paged, pageOf } from '../../storage/lists'
import { ownOnly, refuseForeign } from '../billable'
import { decimalFrom } from '../money'
import type { Invoice as Told } from '../shapes'
import { type Invoice, invoices } from '../tables'

const { _id, status, amount, subscriptionId, billableEntityType, billableEntityId, paidAt, created, updated } = invoices
const sortable = { _id, status, amount, subscriptionId, paidAt, created, updated }
const KNOWN: Partial<Record<keyof Filters, string[]>> = {
  billableEntityType: ['user', 'workspace'],
  status: ['paid', 'open', 'void'],
}

type Filters = { billableEntityType?: string; billableEntityId?: string; status?: string }

/** A page of invoices, newest first: all for admins, else those of the caller's entity. */
export async function list(ctx: Ctx, query: Filters & GrowingListing, answer: Answer) {
  const { db } = ctx
  const page = pageOf(query, sortable)
  // Only admins choose whose invoices they see; the status filters for everybody.
  const filters: Filters = { ...query, ...ownOnly(ctx) }
  const anyOf = (column: SQLiteColumn, path: keyof Filters) => {
    const values = namesOf(filters[path], path)
    const unknown = values?.find((value) => KNOWN[path] && !KNOWN[path].includes(value))
    if (unknown) invalid({ path, message: `There is no ${path} "${unknown}", but ${KNOWN[path]?.join(', ')}.` })
    return values && inArray(column, values)
  }
  const where = and(
    anyOf(billableEntityType, 'billableEntityType'),
    anyOf(billableEntityId, 'billableEntityId'),
    anyOf(status, 'status'),
  )
  const rows = await paged(page, db.select().from(invoices).where(and(where, page.after)))
  return answerGrowingPage(answer, page, rows, () => db.$count(invoices, where), shown)
}

/** One invoice. @throws 404 INVOICE_NOT_FOUND, 403 for somebody else's */
export async function get(ctx: Ctx, id: string): Promise<Told> {
  const found = !id.includes('\0') && (await ctx.db.select().from(invoices).where(eq(_id, id)).get())
  return shown(refuseForeign(ctx, found || missing('invoice')))
}

const shown = ({ amount, items, ...invoice }: Invoice): Told => ({
  ...invoice,
  amount: decimalFrom(amount, invoice.currency),
  items: items.map((item) => ({ ...item, amount: decimalFrom(item.amount, invoice.currency) })),
})
