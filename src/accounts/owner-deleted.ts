import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'

/** A user or a workspace that is removed. */
export type DeletedOwner = { type: 'user' | 'workspace'; id: string }
type OwnerDeletedHandler = (tenant: Pick<Tenant, 'tenant'>, tx: Tx, leaving: DeletedOwner) => Promise<unknown>

const handlers: OwnerDeletedHandler[] = []

/** Says what ends with users and workspaces, in the transaction that removes them. */
export const onOwnerDeleted = (...added: OwnerDeletedHandler[]) => void handlers.push(...added)

/** Ends what goes with somebody. */
export async function runOwnerDeletedHandlers(tenant: Pick<Tenant, 'tenant'>, tx: Tx, owner: DeletedOwner) {
  for (const handler of handlers) await handler(tenant, tx, owner)
}
