import type { PublicCtx } from '../accounts/context'
import { slot } from '../core/extension'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import type { Model } from './model'
import type { SchemaDiff } from './schema-diff'
import type { BlueprintChangeProblem } from './shapes'

/** The effect of an alteration on the existing entities, in numbers. */
export type DryRunReport = { entities: number; breaking: number; rewritten: number; problems: BlueprintChangeProblem[] }

/** The functions of the area entities that blueprints need. */
export type EntityStore = {
  /** Returns whether the blueprint has entities. */
  hasEntities(db: Db, blueprint: string): Promise<boolean>
  /** Removes all entities in batches. `whenEmpty` runs in the transaction that removes the last one. */
  removeAll(ctx: PublicCtx, model: Model, whenEmpty: (tx: Tx) => Promise<void>): Promise<void>
  /** Undoes interrupted imports. */
  undoAbandonedImports(tenant: Tenant, model: Model): Promise<void>
  /** Returns whether an atomic import is running, which may restore earlier entities. */
  isImporting(tx: Tx, blueprint: string): Promise<boolean>
  /** Returns what an alteration would do to all entities, without changing them. */
  surveyChange(tenant: Tenant, model: Model, next: Model, alteration: SchemaDiff): Promise<DryRunReport>
  /** Continues the current alteration in the background, unless this is already being done. */
  resumeAlteration(tenant: Tenant, key: string): void
  /** Continues to build and to remove indexes of fields in the background, unless this is already being done. */
  resumeIndexing(tenant: Tenant, key: string): void
}

export const entityStore = slot<EntityStore>('entity store')
