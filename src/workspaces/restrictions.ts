import type { Ctx } from '../accounts/context'
import { workspaceSettings } from '../accounts/memberships/workspace-settings'
import { extensions } from '../core/extension'
import { Problem } from '../core/problem'
import { getSettings } from '../platform/settings/tenant-settings'
import type { Tenant } from '../tenancy/tenants'

/** Labels and roles of workspaces. */
export type WorkspaceNames = { labels: Iterable<string>; roles: Iterable<string> }

/** Labels and roles of workspaces that only admins of the tenant can give. */
export type Restrictions = { labels: Set<string>; roles: Set<string> }

/** Every workspace has these roles, so a rule that names one does not restrict it; `restrictedRoles` does. */
export const BUILT_IN_WORKSPACE_ROLES = ['admin', 'member']

/** Functions of other areas that return the workspace labels and roles named in their rules. */
export const workspaceNameSources = extensions<(tenant: Tenant) => WorkspaceNames | Promise<WorkspaceNames>>(
  'names of workspace labels and roles',
)

/** Returns the labels and roles listed in the configuration and, with `restricted: "named"`, those named in rules. */
export async function getRestrictions(tenant: Tenant): Promise<Restrictions> {
  const settings = await getSettings(tenant, workspaceSettings)
  const [labels, roles] = [new Set(settings.restrictedLabels), new Set(settings.restrictedRoles)]
  if (settings.restricted === 'listed') return { labels, roles }
  for (const list of workspaceNameSources()) {
    const names = await list(tenant)
    for (const label of names.labels) labels.add(label)
    for (const role of names.roles) if (!BUILT_IN_WORKSPACE_ROLES.includes(role)) roles.add(role)
  }
  return { labels, roles }
}

/** Returns the labels and roles that the caller may not give: none for admins of the tenant. */
export const getCallerRestrictions = async (ctx: Ctx): Promise<Restrictions> =>
  ctx.actor.privileged ? { labels: new Set(), roles: new Set() } : getRestrictions(ctx)

/** @throws 403 RESTRICTED_LABEL when a restricted label is given or removed */
export function assertMayLabel({ labels: restricted }: Restrictions, labels: string[], before: string[] = []) {
  const changed = [
    ...labels.filter((name) => !before.includes(name)),
    ...before.filter((name) => !labels.includes(name)),
  ]
  const label = changed.find((name) => restricted.has(name))
  if (label !== undefined)
    throw new Problem(403, 'RESTRICTED_LABEL', `Only admins of the tenant can give or remove the label "${label}".`)
}

/** @throws 403 RESTRICTED_ROLE for a restricted role that is not in `before` */
export function assertMayGiveRoles({ roles: restricted }: Restrictions, roles: string[], before: string[] = []) {
  const role = roles.find((name) => restricted.has(name) && !before.includes(name))
  if (role !== undefined)
    throw new Problem(403, 'RESTRICTED_ROLE', `Only admins of the tenant can give the workspace role "${role}".`)
}
