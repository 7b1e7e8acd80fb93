import { asc, eq } from 'drizzle-orm'
import { notFound } from '../core/problem'
import type { Db } from '../storage/port'
import { cached } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { type KindName, kinds, type ResolvedConnection } from './kinds/index'
import { readSecrets } from './secrets'
import { connections } from './tables'

type Row = typeof connections.$inferSelect

/**
 * Returns a connection with its secrets, which must never be sent to clients.
 * @throws 404 INTEGRATION_SOURCE_NOT_FOUND, also when it is of another kind
 */
export async function resolveConnection<Name extends KindName>(
  tenant: Tenant,
  id: string,
  kind: Name,
): Promise<ResolvedConnection<Name>> {
  const row = await getConnection(tenant.db, id)
  return row.kind === kind ? ((await withSecrets(tenant, row)) as ResolvedConnection<Name>) : notFound(RESOURCE_NAME)
}

/** Returns all connections of a kind with their secrets, oldest first. Cached: each provider webhook needs them. */
export async function resolveAllOfKind<Name extends KindName>(
  tenant: Tenant,
  kind: Name,
): Promise<ResolvedConnection<Name>[]> {
  const { created, _id } = connections
  const condition = eq(connections.kind, kind)
  return cached(tenant, 'connections', kind, async () => {
    const rows = await tenant.db.select().from(connections).where(condition).orderBy(asc(created), asc(_id))
    return Promise.all(rows.map((row) => withSecrets(tenant, row) as Promise<ResolvedConnection<Name>>))
  })
}

const RESOURCE_NAME = 'integration source'

/** Returns the row of a connection. @throws 404 INTEGRATION_SOURCE_NOT_FOUND */
export const getConnection = async (db: Pick<Db, 'select'>, id: string): Promise<Row> =>
  (await db.select().from(connections).where(eq(connections._id, id)).get()) ?? notFound(RESOURCE_NAME)

/** Returns a connection of any kind with its secrets. */
export async function withSecrets(tenant: Tenant, { _id, name, kind, metadata }: Row): Promise<ResolvedConnection> {
  const names = Object.keys(kinds[kind].authentication.properties)
  return {
    _id,
    tenant: tenant.tenant,
    name,
    kind,
    metadata,
    authentication: await readSecrets(tenant, _id, names),
  } as ResolvedConnection
}
