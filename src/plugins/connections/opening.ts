import { asc, eq } from 'drizzle-orm'
import { missing } from '../../core/problem'
import type { Db } from '../../storage/port'
import { recall } from '../../tenancy/memory'
import type { Tenant } from '../../tenancy/tenants'
import { type KindName, kinds, type Opened } from './kinds'
import { openSecrets } from './secrets'
import { connections } from './tables'

type Row = typeof connections.$inferSelect

/**
 * A connection with its secrets, for those who ask its server: nothing of it may be told.
 * @throws 404 INTEGRATION_SOURCE_NOT_FOUND, also where it is of another kind
 */
export async function opened<Name extends KindName>(tenant: Tenant, id: string, kind: Name): Promise<Opened<Name>> {
  const row = await found(tenant.db, id)
  return row.kind === kind ? ((await withSecrets(tenant, row)) as Opened<Name>) : missing(NOUN)
}

/** All connections of a kind, with their secrets, the oldest first. What providers send is known by them: they are remembered. */
export async function allOpened<Name extends KindName>(tenant: Tenant, kind: Name): Promise<Opened<Name>[]> {
  const { created, _id } = connections
  const those = eq(connections.kind, kind)
  return recall(tenant, 'connections', kind, async () => {
    const rows = await tenant.db.select().from(connections).where(those).orderBy(asc(created), asc(_id))
    return Promise.all(rows.map((row) => withSecrets(tenant, row) as Promise<Opened<Name>>))
  })
}

const NOUN = 'integration source'

/** @throws 404 */
export const found = async (db: Pick<Db, 'select'>, id: string): Promise<Row> =>
  (await db.select().from(connections).where(eq(connections._id, id)).get()) ?? missing(NOUN)

/** Of whatever kind it is. */
export async function withSecrets(tenant: Tenant, { _id, name, kind, metadata }: Row): Promise<Opened> {
  const names = Object.keys(kinds[kind].authentication.properties)
  return {
    _id,
    tenant: tenant.tenant,
    name,
    kind,
    metadata,
    authentication: await openSecrets(tenant, _id, names),
  } as Opened
}
