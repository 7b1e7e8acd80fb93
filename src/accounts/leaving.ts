import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'

/** A user or a workspace that is removed. */
export type Leaving = { type: 'user' | 'workspace'; id: string }
type Ending = (tenant: Pick<Tenant, 'tenant'>, tx: Tx, leaving: Leaving) => Promise<unknown>

const all: Ending[] = []

/** Says what ends with users and workspaces, in the transaction that removes them. */
export const removalEnds = (...endings: Ending[]) => void all.push(...endings)

/** Ends what goes with somebody. */
export async function endWith(tenant: Pick<Tenant, 'tenant'>, tx: Tx, leaving: Leaving) {
  for (const ending of all) await ending(tenant, tx, leaving)
}
