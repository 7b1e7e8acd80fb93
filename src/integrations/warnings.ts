import type { Warning } from '../blueprints/shapes'
import type { Tenant } from '../tenancy/tenants'
import { getRestrictions } from '../workspaces/restrictions'
import { integrations } from './tables'

/** Returns the workspace roles that integrations name. */
export async function listNamedWorkspaceRoles({ db }: Tenant) {
  const rows = await db.select({ roles: integrations.workspaceRoles }).from(integrations)
  return { labels: [], roles: rows.flatMap(({ roles }) => roles).filter((role) => role !== '*') }
}

/**
 * Returns a warning for each workspace role that may run an integration but that not only admins of the tenant can
 * assign.
 */
export async function listIntegrationWarnings(tenant: Tenant): Promise<Warning[]> {
  const [{ roles: restricted }, rows] = await Promise.all([
    getRestrictions(tenant),
    tenant.db.select({ _id: integrations._id, roles: integrations.workspaceRoles }).from(integrations),
  ])
  return rows.flatMap(({ _id, roles }) =>
    roles
      .filter((role) => !restricted.has(role))
      .map((role) => ({
        ...{ path: `/integrations/${_id}/workspaceRoles`, code: 'UNRESTRICTED_ROLE' },
        message: `Anyone who can create a workspace can hold the role "${role}" in it, and run this integration. Add the role to restrictedRoles of the workspace-configuration.`,
      })),
  )
}
