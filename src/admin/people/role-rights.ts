import type { Blueprint, Rule } from '../api/schema'

/** The role of everybody who is signed in. */
export const SIGNED_IN = '*'
/** The role of everybody who is not signed in. */
export const GUEST = 'guest'

const builtInRights: Record<string, string> = {
  admin: 'May do everything in the tenant.',
  plugin: 'May write blueprints and components, and record events. It is meant for programs.',
  editor: 'May read and record events.',
  user: 'Has no rights of its own. New users have it.',
}

/** Returns what a role may do without any rule, or undefined for a role that gets its rights from rules only. */
export const findBuiltInRight = (role: string): string | undefined => builtInRights[role]

const VERBS: Record<Rule['operation'], string> = {
  create: 'creates',
  read: 'reads',
  update: 'changes',
  delete: 'deletes',
}
const SCOPES = { user: 'their own', workspace: 'those of the active workspace', tenant: 'all' }
const SCOPE_ORDER = ['tenant', 'workspace', 'user'] as const

const applies = (rule: Rule, role: string) => (role === GUEST ? !!rule.guest : !!rule.roleBased?.includes(role))

/** Returns the widest scope in which a role may do an operation, or undefined without a rule. */
function findScope({ permissions = [], permissionScope }: Blueprint, role: string, operation: Rule['operation']) {
  const scopes = permissions
    .filter((rule) => rule.operation === operation && applies(rule, role))
    .map(({ scope }) => scope ?? permissionScope ?? 'user')
  return SCOPE_ORDER.find((scope) => scopes.includes(scope))
}

const listFields = ({ fields }: Blueprint, role: string, key: 'readRoles' | 'writeRoles') =>
  fields.filter((field) => field[key]?.includes(role)).map(({ title, key: name }) => title || name)

/** Returns what the rules of a blueprint give a role, as one sentence, or undefined when they do not name it. */
export function describeRights(blueprint: Blueprint, role: string): string | undefined {
  const byScope = new Map<string, string[]>()
  for (const operation of Object.keys(VERBS) as Rule['operation'][]) {
    const scope = findScope(blueprint, role, operation)
    if (!scope) continue
    const rows = operation === 'create' ? 'new ones' : SCOPES[scope]
    byScope.set(rows, [...(byScope.get(rows) ?? []), VERBS[operation]])
  }
  const [readable, writable] = [listFields(blueprint, role, 'readRoles'), listFields(blueprint, role, 'writeRoles')]
  const parts = [
    ...[...byScope].map(([rows, verbs]) => `${verbs.join(' and ')} ${rows}`),
    ...(readable.length ? [`sees ${readable.join(', ')}`] : []),
    ...(writable.length ? [`fills in ${writable.join(', ')}`] : []),
  ]
  return parts.length ? `${blueprint.name}: ${parts.join(', ')}.` : undefined
}

/** Returns the roles that rules or fields of these blueprints name. */
export const listNamedRoles = (blueprints: readonly Blueprint[]): string[] =>
  blueprints.flatMap(({ permissions = [], fields }) => [
    ...permissions.flatMap(({ roleBased = [] }) => roleBased),
    ...fields.flatMap(({ readRoles = [], writeRoles = [] }) => [...readRoles, ...writeRoles]),
  ])
