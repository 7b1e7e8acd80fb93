import { eq } from 'drizzle-orm'
import { registry } from './registry'
import { tenants } from './tables'

/** Returns the id of the operator's user in a tenant, who may have been deleted there, or null when there was none. */
export async function findSupportUser(tenant: string): Promise<string | null> {
  const row = await registry.db.select({ user: tenants.support }).from(tenants).where(eq(tenants.id, tenant)).get()
  return row?.user ?? null
}

/** Makes a user the operator's, unless it is another one than `before` meanwhile. Returns the operator's user. */
export const replaceSupportUser = (tenant: string, before: string | null, user: string): Promise<string> =>
  registry.write(async (tx) => {
    const row = await tx.select({ user: tenants.support }).from(tenants).where(eq(tenants.id, tenant)).get()
    if (row?.user && row.user !== before) return row.user
    await tx.update(tenants).set({ support: user }).where(eq(tenants.id, tenant))
    return user
  })
