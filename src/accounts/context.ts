import type { Tenant } from '../tenancy/tenants'
import type { Actor } from './actors'

/** A tenant and the actor who asks it. Most functions that serve a route take one as their first argument. */
export type Ctx = Tenant & { actor: Actor }
/** A tenant and the actor who asks it; a guest has none. */
export type PublicCtx = Tenant & { actor?: Actor }
