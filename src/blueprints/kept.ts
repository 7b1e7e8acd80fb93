import type { OpenCtx } from '../accounts/guard'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import type { Alteration } from './alteration'
import type { Model } from './model'
import type { Obstacle } from './shapes'

/** What an alteration does to the entities that are there. */
export type Survey = { entities: number; breaking: number; rewritten: number; problems: Obstacle[] }

/** What blueprints need to know of their entities, which are kept by those who come after. */
export type Kept = {
  /** Whether the blueprint has any. */
  any(tx: Tx, blueprint: string): Promise<boolean>
  /** Removes them all, a slice at a time. */
  removeAll(ctx: OpenCtx, model: Model): Promise<void>
  /** Undoes what interrupted imports have left. */
  undoForsaken(tenant: Tenant, model: Model): Promise<void>
  /** Whether an import of all or nothing is under way, which may put entities back as they were. */
  importing(tx: Tx, blueprint: string): Promise<boolean>
  /** What an alteration would do to them all; changes nothing. */
  survey(tenant: Tenant, model: Model, next: Model, alteration: Alteration): Promise<Survey>
  /** Goes on in the background with the alteration that is under way, unless somebody does. */
  alter(tenant: Tenant, key: string): void
}

export let kept: Kept
export const entitiesAreKeptBy = (keeper: Kept) => {
  kept = keeper
}
