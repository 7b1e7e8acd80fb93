import type { Field, Rule, Warning } from '../api/schema'
import { listSubjects, mayUseField, reachOf } from './access-evaluation'
import { describeScope, type Scope } from './rule-sentences'

type Access = { permissions: Rule[]; permissionScope: Scope; fields: Field[] }
type RuleWarning = Pick<Warning, 'path' | 'message'>

const isForAll = ({ guest, roleBased, workspaceLabelsBased }: Rule) =>
  (guest || roleBased?.includes('*')) && !workspaceLabelsBased?.length

/** Returns whether everybody whom a rule is for is also one of those whom another is for. */
function includesCallers(wide: Rule, narrow: Rule): boolean {
  if (wide.workspaceLabelsBased?.length) return false
  if (wide.guest) return true
  if (narrow.guest) return false
  if (wide.roleBased?.includes('*')) return true
  const covers = (all: string[] = [], some: string[] = []) =>
    all.includes('*') || some.every((name) => all.includes(name))
  return covers(wide.roleBased, narrow.roleBased) && covers(wide.workspaceRoleBased, narrow.workspaceRoleBased)
}

/** Returns what is odd about one rule among the others. */
function listFlaws(rule: Rule, index: number, { permissions, permissionScope }: Access): string[] {
  const { operation, guest, roleBased = [], workspaceRoleBased = [], workspaceLabelsBased = [] } = rule
  const scope = rule.scope ?? permissionScope
  if (!guest && !roleBased.length && !workspaceRoleBased.length) return ['This rule applies to no one. Choose roles.']
  const isOnlyForGuests = guest && !roleBased.length && !workspaceRoleBased.length
  if (isForAll(rule) && scope === 'tenant' && (operation === 'delete' || operation === 'update'))
    return [`Everybody${guest ? ', also guests,' : ' who is signed in'} can ${operation} everything.`]
  const wider = permissions.findIndex(
    (other, n) =>
      n !== index &&
      other.operation === operation &&
      ((other.scope ?? permissionScope) === scope || (other.scope ?? permissionScope) === 'tenant') &&
      includesCallers(other, rule) &&
      (n < index || !includesCallers(rule, other) || (other.scope ?? permissionScope) !== scope),
  )
  if (wider >= 0) return [`This rule adds nothing: rule ${wider + 1} already allows it.`]
  if (isOnlyForGuests && workspaceLabelsBased.length)
    return ['Guests are in no workspace, so that it never applies to them.']
  if (guest && scope !== 'tenant' && operation !== 'create')
    return ['Guests own nothing, so that it reaches nothing for them. Let it reach everything, or leave guests out.']
  return []
}

/** Returns what callers may do by these rules, but cannot finish or see; callers with the same trouble in one sentence. */
function listGaps({ permissions, permissionScope, fields }: Access): string[] {
  const locked = fields.filter((field) => field.required && field.default === undefined && field.writeRoles?.length)
  const gaps = listSubjects(permissions, fields).flatMap(({ label, caller }) => {
    const reach = (operation: Rule['operation']) => reachOf(permissions, permissionScope, operation, caller)
    const blind = (['update', 'delete'] as const)
      .filter((operation) => reach(operation).length && !reach('read').length)
      .map((operation) => `may ${operation} ${describeScope(operation, reach(operation)[0]!)}, but read nothing.`)
    const blocked = locked
      .filter((field) => reach('create').length && !mayUseField(field, 'writeRoles', caller))
      .map(({ key }) => `may create entities, but not write “${key}”, which is required.`)
    return [...blind, ...blocked].map((gap) => ({ label, gap }))
  })
  return [...Map.groupBy(gaps, ({ gap }) => gap)].map(
    ([gap, callers]) => `${callers.map(({ label }) => label).join(', ')}: ${gap}`,
  )
}

/** Returns what is allowed, but probably not meant: of one rule, or of all together. */
export function listRuleWarnings(access: Access, knownRoles: readonly string[]): RuleWarning[] {
  const { permissions } = access
  const unknown = (rule: Rule) =>
    knownRoles.length
      ? (rule.roleBased ?? [])
          .filter((role) => role !== '*' && !knownRoles.includes(role))
          .map((role) => `No user has the role “${role}” yet.`)
      : []
  const ofRules = permissions.flatMap((rule, index) =>
    [...listFlaws(rule, index, access), ...unknown(rule)].map((message) => ({
      path: `/permissions/${index}`,
      message,
    })),
  )
  const together = listGaps(access)
  return [...ofRules, ...together.map((message) => ({ path: '/permissions', message }))]
}
