import type { Tenant } from '../tenancy/tenants'
import type { Actor } from './actors'

/** A tenant and the actor of a request. Most functions that serve a route take it as their first argument. */
export type Ctx = Tenant & { actor: Actor }
/** A tenant and the actor of a request; a guest has no actor. */
export type PublicCtx = Tenant & { actor?: Actor }
