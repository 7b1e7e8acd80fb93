import { BUILT_IN_ROLES, type Restrictions, restrictionsOf } from '../accounts/workspaces/restrictions'
import { recall } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import { scopeOf } from './rules'
import type { Definition, Rule, Warning } from './shapes'
import { blueprints } from './tables'

type Gates = Pick<Definition, 'permissions' | 'permissionScope' | 'limitations'>

const ANY = '*'

/** The labels and roles of workspaces that the rules and limitations of all blueprints name. */
export const listWorkspaceNames = (tenant: Tenant) =>
  recall(tenant, 'blueprints', '\0workspace names', async () => {
    const definitions = await tenant.db.select({ definition: blueprints.definition }).from(blueprints)
    const [labels, roles] = [new Set<string>(), new Set<string>()]
    for (const { definition } of definitions) {
      const { permissions = [], limitations = [] } = definition
      for (const { workspaceLabelsBased = [], workspaceRoleBased = [] } of permissions) {
        for (const label of workspaceLabelsBased) labels.add(label)
        for (const role of workspaceRoleBased) roles.add(role)
      }
      for (const { workspaceLabels = [] } of limitations) for (const label of workspaceLabels) labels.add(label)
    }
    return { labels: [...labels].filter(isName), roles: [...roles].filter(isName) }
  })

/** What a blueprint relies on although members of a workspace may give it to themselves. */
export async function warningsOf(tenant: Tenant, gates: Gates): Promise<Warning[]> {
  const { permissions = [], limitations = [] } = gates
  const named = [...permissions.map(namesIn), ...limitations.map(({ workspaceLabels = [] }) => workspaceLabels)]
  if (!named.flat().length) return []
  const restrictions = await restrictionsOf(tenant)
  return [
    ...permissions.flatMap(({ workspaceLabelsBased = [], workspaceRoleBased = [], ...rule }, index) => [
      ...labelWarnings(restrictions, `/permissions/${index}/workspaceLabelsBased`, workspaceLabelsBased),
      ...roleWarnings(
        restrictions,
        `/permissions/${index}/workspaceRoleBased`,
        workspaceRoleBased,
        scopeOf(gates, rule) === 'tenant',
      ),
    ]),
    ...limitations.flatMap(({ workspaceLabels = [] }, index) =>
      labelWarnings(restrictions, `/limitations/${index}/workspaceLabels`, workspaceLabels),
    ),
  ]
}

const namesIn = ({ workspaceLabelsBased = [], workspaceRoleBased = [] }: Rule) => [
  ...workspaceLabelsBased,
  ...workspaceRoleBased,
]

function labelWarnings({ labels }: Restrictions, path: string, named: string[]): Warning[] {
  return named
    .filter((label) => isName(label) && !labels.has(label))
    .map((label) => ({
      ...{ path, code: 'UNRESTRICTED_LABEL' as const },
      message: `Anyone who can create a workspace can give it the label "${label}". Add it to restrictedLabels of the workspace-configuration.`,
    }))
}

/** A rule that reaches the whole tenant is worth a warning even for roles that every workspace has. */
function roleWarnings({ roles }: Restrictions, path: string, named: string[], ofTenant: boolean): Warning[] {
  const open = named.filter((role) => !roles.has(role))
  if (ofTenant)
    return open.map((role) => ({
      ...{ path, code: 'WORKSPACE_ROLE_REACHES_TENANT' as const },
      message: `This rule reaches the rows of the whole tenant, and anyone who can create a workspace can hold the role "${role}" in it. Add the role to restrictedRoles of the workspace-configuration, or use the scope "workspace".`,
    }))
  return open
    .filter((role) => isName(role) && !BUILT_IN_ROLES.includes(role))
    .map((role) => ({
      ...{ path, code: 'UNRESTRICTED_ROLE' as const },
      message: `Admins of a workspace can give its members the role "${role}". Add it to restrictedRoles of the workspace-configuration.`,
    }))
}

const isName = (name: string) => name !== ANY
