import { workspaceNamesComeFrom } from '../accounts/workspaces/restrictions'
import { blueprints } from '../blueprints/tables'
import { listWorkspaceNames, warningsOf } from '../blueprints/warnings'
import { integrationWarnings, listNamedWorkspaceRoles } from '../plugins/integrations/warnings'
import { anyTenantNamed } from '../tenancy/tenants'

/** What a tenant allows but probably does not mean: each with its place, such as `/blueprints/books/permissions/0`. */
export async function tenantWarnings(id: string) {
  workspaceNamesComeFrom(listWorkspaceNames, listNamedWorkspaceRoles)
  const tenant = await anyTenantNamed(id)
  const all = await tenant.db.select({ key: blueprints.key, definition: blueprints.definition }).from(blueprints)
  const ofBlueprints = await Promise.all(
    all.map(async ({ key, definition }) =>
      (await warningsOf(tenant, definition)).map((warning) => ({
        ...warning,
        path: `/blueprints/${key}${warning.path}`,
      })),
    ),
  )
  return [...ofBlueprints.flat(), ...(await integrationWarnings(tenant))]
}
