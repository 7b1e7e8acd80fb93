import type { WorkOwner } from '../core/turn-queue'
import { clientNetwork } from '../tenancy/client-connection'
import type { PublicCtx } from './context'

/** Returns for whom costly work is done: a user, guests of a network, or nobody for what the server does by itself. */
export const toWorkOwner = ({ tenant, actor }: Pick<PublicCtx, 'tenant' | 'actor'>, request?: Request): WorkOwner => ({
  tenant,
  caller: actor?.user ?? (request ? `at ${clientNetwork(request)}` : 'nobody'),
})
