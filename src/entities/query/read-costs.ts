import type { PublicCtx } from '../../accounts/context'
import { clientNetwork } from '../../tenancy/client-connection'
import type { WorkOwner } from '../../tenancy/fair-queue'

/** How many ms a read may take before it counts as costly: on the thread, and waiting for the database. */
export const freeReadMs = { thread: 2.5, waiting: 200 }

/** How many costly reads may be under way. */
export const COSTLY_READ_LIMITS = { perTenant: 200, perCaller: 50 }

/** Returns for whom a costly read is done. */
export const toWorkOwner = ({ tenant, actor }: PublicCtx, request: Request): WorkOwner => ({
  tenant,
  caller: actor?.user ?? `at ${clientNetwork(request)}`,
})
