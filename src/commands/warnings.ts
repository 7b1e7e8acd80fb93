import { blueprints } from '../blueprints/tables'
import { listWarnings } from '../blueprints/warnings'
import { listIntegrationWarnings } from '../integrations/warnings'
import { getTenantAnyStatus } from '../tenancy/tenants'

/** What a tenant allows but probably does not mean: each with its place, such as `/blueprints/books/permissions/0`. */
export async function listTenantWarnings(id: string) {
  await import('../app') // which rules name labels and roles is told by its areas
  const tenant = await getTenantAnyStatus(id)
  const all = await tenant.db.select({ key: blueprints.key, definition: blueprints.definition }).from(blueprints)
  const ofBlueprints = await Promise.all(
    all.map(async ({ key, definition }) =>
      (await listWarnings(tenant, definition)).map((warning) => ({
        ...warning,
        path: `/blueprints/${key}${warning.path}`,
      })),
    ),
  )
  return [...ofBlueprints.flat(), ...(await listIntegrationWarnings(tenant))]
}
