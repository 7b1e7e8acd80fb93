import { extensions } from '../core/extension'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'

/** A user or a workspace that is being deleted. */
export type DeletedOwner = { type: 'user' | 'workspace'; id: string }
type OwnerDeletedHandler = (tenant: Pick<Tenant, 'tenant'>, tx: Tx, owner: DeletedOwner) => Promise<unknown>

/** Handlers that remove the data of a deleted user or workspace, in the transaction of the deletion. */
export const ownerDeletedHandlers = extensions<OwnerDeletedHandler>('handlers of deleted owners')

/** Removes the data of a user or a workspace that is deleted in this transaction. */
export async function runOwnerDeletedHandlers(tenant: Pick<Tenant, 'tenant'>, tx: Tx, owner: DeletedOwner) {
  for (const handler of ownerDeletedHandlers()) await handler(tenant, tx, owner)
}
