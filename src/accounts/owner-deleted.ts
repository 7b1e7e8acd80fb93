import { extensions } from '../core/extension'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'

/** A user or a workspace that is removed. */
export type DeletedOwner = { type: 'user' | 'workspace'; id: string }
type OwnerDeletedHandler = (tenant: Pick<Tenant, 'tenant'>, tx: Tx, leaving: DeletedOwner) => Promise<unknown>

/** What ends with users and workspaces, in the transaction that removes them. */
export const ownerDeletedHandlers = extensions<OwnerDeletedHandler>('handlers of deleted owners')

/** Removes what belongs to a user or a workspace that is deleted in this transaction. */
export async function runOwnerDeletedHandlers(tenant: Pick<Tenant, 'tenant'>, tx: Tx, owner: DeletedOwner) {
  for (const handler of ownerDeletedHandlers()) await handler(tenant, tx, owner)
}
