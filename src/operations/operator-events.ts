import { and, eq } from 'drizzle-orm'
import { applyPage, type GrowingListQuery, parsePage, toGrowingListPage } from '../storage/pagination'
import { registry } from '../tenancy/registry'
import { operatorEvents } from '../tenancy/tables'

const SORTABLE_COLUMNS = { _id: operatorEvents._id, created: operatorEvents.created }

/** Returns a page of what was done with tenants, latest first. */
export async function listOperatorEvents(query: GrowingListQuery & { tenant?: string }) {
  const page = parsePage(query, SORTABLE_COLUMNS)
  const isOfTenant = query.tenant ? eq(operatorEvents.tenant, query.tenant) : undefined
  const rows = await applyPage(page, registry.db.select().from(operatorEvents).where(and(isOfTenant, page.after)))
  return toGrowingListPage(
    page,
    rows,
    () => registry.db.$count(operatorEvents, isOfTenant),
    (row) => row,
  )
}
