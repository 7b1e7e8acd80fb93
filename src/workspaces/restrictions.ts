import type { Ctx } from '../accounts/context'
import { workspaceSettings } from '../accounts/memberships/workspace-settings'
import { extensions } from '../core/extension'
import { Problem } from '../core/problem'
import { getSettings } from '../platform/settings/tenant-settings'
import type { Tenant } from '../tenancy/tenants'

/** Labels and roles of workspaces. */
export type WorkspaceNames = { labels: Iterable<string>; roles: Iterable<string> }

/** Labels and roles of workspaces that only admins of the tenant give. */
export type Restrictions = { labels: Set<string>; roles: Set<string> }

/** Every workspace has them, so a rule that names one does not restrict it; a list does. */
export const BUILT_IN_WORKSPACE_ROLES = ['admin', 'member']

/** Lists the labels and roles of workspaces that rules of other areas name. */
export const workspaceNameSources = extensions<(tenant: Tenant) => WorkspaceNames | Promise<WorkspaceNames>>(
  'names of workspace labels and roles',
)

/** What the tenant restricts: what its configuration lists and, by `restricted: "named"`, what its rules name. */
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

/** What the caller may not give: nothing for admins of the tenant. */
export const getCallerRestrictions = async (ctx: Ctx): Promise<Restrictions> =>
  ctx.actor.privileged ? { labels: new Set(), roles: new Set() } : getRestrictions(ctx)

/** @throws 403 RESTRICTED_LABEL for a restricted label that is given or taken away */
export function assertMayLabel({ labels: restricted }: Restrictions, labels: string[], before: string[] = []) {
  const changed = [...labels.filter((one) => !before.includes(one)), ...before.filter((one) => !labels.includes(one))]
  const label = changed.find((one) => restricted.has(one))
  if (label !== undefined)
    throw new Problem(403, 'RESTRICTED_LABEL', `Only admins of the tenant can give or remove the label "${label}".`)
}

/** @throws 403 RESTRICTED_ROLE for a restricted role that was not given before */
export function assertMayGiveRoles({ roles: restricted }: Restrictions, roles: string[], before: string[] = []) {
  const role = roles.find((one) => restricted.has(one) && !before.includes(one))
  if (role !== undefined)
    throw new Problem(403, 'RESTRICTED_ROLE', `Only admins of the tenant can give the workspace role "${role}".`)
}
