import { blueprints } from '../blueprints/tables'
import { listWarnings, listWorkspaceNames } from '../blueprints/warnings'
import { listIntegrationWarnings, listNamedWorkspaceRoles } from '../integrations/warnings'
import { getTenantAnyStatus } from '../tenancy/tenants'
import { registerWorkspaceNames } from '../workspaces/restrictions'

/** What a tenant allows but probably does not mean: each with its place, such as `/blueprints/books/permissions/0`. */
export async function listTenantWarnings(id: string) {
  registerWorkspaceNames(listWorkspaceNames, listNamedWorkspaceRoles)
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
