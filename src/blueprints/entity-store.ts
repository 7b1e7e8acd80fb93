import type { PublicCtx } from '../accounts/context'
import { slot } from '../core/extension'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import type { Model } from './model'
import type { SchemaDiff } from './schema-diff'
import type { BlueprintChangeProblem } from './shapes'

/** What an alteration does to the entities that are there. */
export type DryRunReport = { entities: number; breaking: number; rewritten: number; problems: BlueprintChangeProblem[] }

/** What blueprints need to know of their entities, which are kept by those who come after. */
export type EntityStore = {
  /** Whether the blueprint has any. */
  hasEntities(tx: Tx, blueprint: string): Promise<boolean>
  /** Removes them all, a slice at a time. */
  removeAll(ctx: PublicCtx, model: Model): Promise<void>
  /** Undoes what interrupted imports have left. */
  undoAbandonedImports(tenant: Tenant, model: Model): Promise<void>
  /** Whether an import of all or nothing is under way, which may put entities back as they were. */
  isImporting(tx: Tx, blueprint: string): Promise<boolean>
  /** What an alteration would do to them all; changes nothing. */
  surveyChange(tenant: Tenant, model: Model, next: Model, alteration: SchemaDiff): Promise<DryRunReport>
  /** Goes on in the background with the alteration that is under way, unless somebody does. */
  resumeAlteration(tenant: Tenant, key: string): void
}

export const entityStore = slot<EntityStore>('entity store')
