import { and, eq, inArray, lt } from 'drizzle-orm'
import { log } from '../core/log'
import { Problem } from '../core/problem'
import type { Lease } from '../jobs/with-lease'
import { writeInvalidating } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { entityStore } from './entity-store'
import { INDEX_KEYS, typeOfField } from './fields'
import { type BlueprintRow, findAlterationRow } from './model-loader'
import { diffDefinitions } from './schema-diff'
import { blueprints, fields } from './tables'
import { startAlteration } from './update'

/**
 * Builds the indexes of fields again whose keys are of an earlier version, beside the present ones. Where several
 * entities would then have the same unique value, everything stays as it is, and the alteration has failed.
 */
export async function upgradeIndexKeys(tenant: Tenant & Lease) {
  const outdated = await tenant.db.select().from(fields).where(lt(fields.indexKeys, INDEX_KEYS))
  const keys = [...new Set(outdated.map(({ blueprint }) => blueprint))]
  for (const key of keys) {
    tenant.signal.throwIfAborted()
    const before = await tenant.db.select().from(blueprints).where(eq(blueprints.key, key)).get()
    const versions = new Map(
      outdated.filter(({ blueprint }) => blueprint === key).map((field) => [field.key, field.indexKeys]),
    )
    const rebuilt = before ? listOutdatedFields(before, versions) : []
    // One that has failed is for an admin to look at.
    if (!before || !rebuilt.length || (await findAlterationRow(tenant, key))) continue
    try {
      await rebuild(tenant, before, rebuilt)
    } catch (error) {
      // An import, or another change, comes first.
      if (!(error instanceof Problem)) throw error
      log.info({ event: 'index-keys-later', tenant: tenant.tenant, blueprint: key, code: error.code })
    }
  }
}

/** Returns the fields whose keys are other ones in the latest version. */
const listOutdatedFields = ({ definition }: BlueprintRow, versions: Map<string, number>): string[] =>
  definition.fields
    .filter((field) => typeOfField(field).toIndexKey !== typeOfField(field, versions.get(field.key)).toIndexKey)
    .map(({ key }) => key)

async function rebuild(tenant: Tenant, before: BlueprintRow, rebuilt: string[]) {
  const { key, definition } = before
  if (await markWithoutEntities(tenant, before, rebuilt)) return
  const alteration = diffDefinitions(definition, definition, rebuilt)
  if (await startAlteration(tenant, { before, change: { definition }, alteration }))
    entityStore().resumeAlteration(tenant, key)
}

/** Returns whether a blueprint has no entities, and then lets its fields have the latest keys. */
const markWithoutEntities = (tenant: Tenant, { key, indexing }: BlueprintRow, rebuilt: string[]): Promise<boolean> =>
  writeInvalidating(tenant, 'blueprints', async (tx) => {
    if (await entityStore().hasEntities(tx, key)) return false
    const isRebuilt = and(eq(fields.blueprint, key), inArray(fields.key, rebuilt))
    await tx.update(fields).set({ indexKeys: INDEX_KEYS }).where(isRebuilt)
    // Writers with the model of before notice it.
    const unchanged = and(eq(blueprints.key, key), eq(blueprints.indexing, indexing))
    await tx
      .update(blueprints)
      .set({ indexing: indexing + 1 })
      .where(unchanged)
    return true
  })
