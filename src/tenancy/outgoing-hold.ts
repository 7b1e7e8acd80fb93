import { eq } from 'drizzle-orm'
import { Problem } from '../core/problem'
import { writeInvalidating } from './cache'
import { rememberFirstTenant } from './default-tenant'
import { recordOperatorEvent } from './operator-events'
import { registry } from './registry'
import { tenants } from './tables'
import { getTenantInfo } from './tenant-list'
import { isOutgoingHeld } from './tenants'

/**
 * Refuses what a copy of a tenant would do outside: it would come from both.
 * @throws 409 OUTGOING_HELD until the operator lets the tenant act outside
 */
export async function assertOutgoingAllowed({ tenant }: { tenant: string }) {
  if (!(await isOutgoingHeld(tenant))) return
  const message =
    'This tenant is a copy that does nothing outside. The operator can change that: atoll tenant resume <id> --outgoing.'
  throw new Problem(409, 'OUTGOING_HELD', message)
}

/** Lets a copy of a tenant act outside from now on. Its jobs go on within a minute. @throws 404 TENANT_NOT_FOUND */
export async function resumeOutgoing(id: string) {
  const { outgoingHeld } = await getTenantInfo(id)
  if (!outgoingHeld) return
  await writeInvalidating(registry, 'tenants', async (tx) => {
    await tx.update(tenants).set({ outgoingHeld: null }).where(eq(tenants.id, id))
    await rememberFirstTenant(tx, id)
    await recordOperatorEvent(tx, 'tenant-outgoing-resumed', id)
  })
}
