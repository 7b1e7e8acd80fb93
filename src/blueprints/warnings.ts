import { listSchemaErrors, listUncheckedFormats } from '../core/json-schema/validator'
import { weakCached } from '../core/weak-cache'
import { cached } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { BUILT_IN_WORKSPACE_ROLES, getRestrictions, type Restrictions } from '../workspaces/restrictions'
import { ruleScopeOf } from './access-rules'
import { readDefinitions } from './definitions'
import type { Definition, Field, Rule, Warning } from './shapes'

type AccessRules = Pick<Definition, 'permissions' | 'permissionScope' | 'limitations'>
type FieldSchemas = { fields: Pick<Field, 'key' | 'type' | 'schema'>[]; computed?: Definition['computed'] }

const WILDCARD = '*'

/** Returns the workspace labels and roles that the rules and limitations of all blueprints name. */
export const listWorkspaceNames = (tenant: Tenant) =>
  cached(tenant, 'blueprints', '\0workspace names', async () => {
    const [labels, roles] = [new Set<string>(), new Set<string>()]
    for await (const definitions of readDefinitions(tenant.db))
      for (const [, { permissions = [], limitations = [] }] of definitions) {
        for (const { workspaceLabelsBased = [], workspaceRoleBased = [] } of permissions) {
          for (const label of workspaceLabelsBased) labels.add(label)
          for (const role of workspaceRoleBased) roles.add(role)
        }
        for (const { workspaceLabels = [] } of limitations) for (const label of workspaceLabels) labels.add(label)
      }
    return { labels: [...labels].filter(isConcreteName), roles: [...roles].filter(isConcreteName) }
  })

/** Returns warnings about the schemas of fields, and about labels and roles that members can give themselves. */
export const listWarnings = async (tenant: Tenant, definition: AccessRules & FieldSchemas): Promise<Warning[]> => [
  ...(await listSchemaWarnings(definition)),
  ...listArithmeticWarnings(definition),
  ...(await listAccessWarnings(tenant, definition)),
]

/** A schema that was stored before may have what is refused in a new one. */
async function listSchemaWarnings({ fields }: FieldSchemas): Promise<Warning[]> {
  const warnings = fields.map(async ({ schema }, index) =>
    schema
      ? (await warningsOfSchema(schema)).map((warning) => ({
          ...warning,
          path: `/fields/${index}/schema${warning.path}`,
        }))
      : [],
  )
  return (await Promise.all(warnings)).flat()
}

/** Formulas turn decimals into binary numbers to calculate with them. */
const listArithmeticWarnings = ({ fields, computed = {} }: FieldSchemas): Warning[] =>
  fields
    .filter(({ key, type }) => type === 'decimal' && Object.hasOwn(computed, key) && /\$number\b/.test(computed[key]!))
    .map(({ key }) => ({
      ...{ path: `/computed/${key}`, code: 'BINARY_ARITHMETIC' },
      message: `Formulas calculate with binary numbers of about 15 digits, so "${key}" may differ in further ones.`,
    }))

const warningsOfSchema = weakCached(
  async (schema: Record<string, unknown>): Promise<Warning[]> => [
    ...(await listSchemaErrors(schema)).map((error) => ({ ...error, code: 'INVALID_SCHEMA' })),
    ...(await listUncheckedFormats(schema)).map(({ path, format }) => ({
      ...{ path, code: 'UNCHECKED_FORMAT' },
      message: `Values are not checked against the format "${format}". Add a pattern.`,
    })),
  ],
)

/** Returns warnings about labels and roles in rules that members of a workspace can give themselves. */
async function listAccessWarnings(tenant: Tenant, accessRules: AccessRules): Promise<Warning[]> {
  const { permissions = [], limitations = [] } = accessRules
  const namesByRule = [
    ...permissions.map(namesOfRule),
    ...limitations.map(({ workspaceLabels = [] }) => workspaceLabels),
  ]
  if (!namesByRule.flat().length) return []
  const restrictions = await getRestrictions(tenant)
  return [
    ...permissions.flatMap(({ workspaceLabelsBased = [], workspaceRoleBased = [], ...rule }, index) => [
      ...labelWarnings(restrictions, `/permissions/${index}/workspaceLabelsBased`, workspaceLabelsBased),
      ...roleWarnings(
        restrictions,
        `/permissions/${index}/workspaceRoleBased`,
        workspaceRoleBased,
        ruleScopeOf(accessRules.permissionScope, rule) === 'tenant',
      ),
    ]),
    ...limitations.flatMap(({ workspaceLabels = [] }, index) =>
      labelWarnings(restrictions, `/limitations/${index}/workspaceLabels`, workspaceLabels),
    ),
  ]
}

const namesOfRule = ({ workspaceLabelsBased = [], workspaceRoleBased = [] }: Rule) => [
  ...workspaceLabelsBased,
  ...workspaceRoleBased,
]

function labelWarnings({ labels }: Restrictions, path: string, named: string[]): Warning[] {
  return named
    .filter((label) => isConcreteName(label) && !labels.has(label))
    .map((label) => ({
      ...{ path, code: 'UNRESTRICTED_LABEL' as const },
      message: `Anyone who can create a workspace can give it the label "${label}". Add it to restrictedLabels of the workspace-configuration.`,
    }))
}

/** A rule that reaches the whole tenant gets a warning even for roles that every workspace has. */
function roleWarnings({ roles }: Restrictions, path: string, named: string[], ofTenant: boolean): Warning[] {
  const unrestricted = named.filter((role) => !roles.has(role))
  if (ofTenant)
    return unrestricted.map((role) => ({
      ...{ path, code: 'WORKSPACE_ROLE_REACHES_TENANT' as const },
      message: `This rule reaches the rows of the whole tenant, and anyone who can create a workspace can hold the role "${role}" in it. Add the role to restrictedRoles of the workspace-configuration, or use the scope "workspace".`,
    }))
  return unrestricted
    .filter((role) => isConcreteName(role) && !BUILT_IN_WORKSPACE_ROLES.includes(role))
    .map((role) => ({
      ...{ path, code: 'UNRESTRICTED_ROLE' as const },
      message: `Admins of a workspace can give its members the role "${role}". Add it to restrictedRoles of the workspace-configuration.`,
    }))
}

const isConcreteName = (name: string) => name !== WILDCARD
