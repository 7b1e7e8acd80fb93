import { eq } from 'drizzle-orm'
import type { Warning } from '../blueprints/shapes'
import { dialectOf, listUnknownKeywords } from '../core/json-schema/keywords'
import type { Tenant } from '../tenancy/tenants'
import { getRestrictions } from '../workspaces/restrictions'
import { integrations } from './tables'
import type { Trigger } from './triggers/index'

/** Returns the workspace roles that integrations name. */
export async function listNamedWorkspaceRoles({ db }: Tenant) {
  const rows = await db.select({ roles: integrations.workspaceRoles }).from(integrations)
  return { labels: [], roles: rows.flatMap(({ roles }) => roles).filter((role) => role !== '*') }
}

/** Returns a warning for each part of the parameters of a tool that JSON Schema does not have. */
async function listToolWarnings({ db }: Tenant): Promise<Warning[]> {
  const { _id, trigger, triggerKind } = integrations
  const rows = await db.select({ _id, trigger }).from(integrations).where(eq(triggerKind, 'tool'))
  return rows.flatMap(({ _id, trigger }) => {
    const { parameters = {} } = trigger as Trigger<'tool'>
    const dialect = dialectOf(parameters)
    const errors = dialect
      ? listUnknownKeywords(parameters, dialect)
      : [{ path: '/$schema', message: 'This dialect of JSON Schema is not known.' }]
    return errors.map(({ path, message }) => ({
      ...{ path: `/integrations/${_id}/trigger/parameters${path}`, code: 'INVALID_SCHEMA', message },
    }))
  })
}

/** Returns warnings about the schemas of tools, and about workspace roles that may run an integration. */
export const listIntegrationWarnings = async (tenant: Tenant): Promise<Warning[]> => [
  ...(await listToolWarnings(tenant)),
  ...(await listRoleWarnings(tenant)),
]

/** Returns a warning for each role that may run an integration but that not only admins of the tenant can assign. */
async function listRoleWarnings(tenant: Tenant): Promise<Warning[]> {
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
