import type { Field, Rule } from '../api/schema'
import type { Operation, Scope } from './rule-sentences'

/** Somebody who asks: their roles, and those in their active workspace with its labels. */
export type Caller = { roles: string[]; workspace?: { roles: string[]; labels: string[] } }

/** A row of the matrix: a kind of callers, or guests without one. */
export type Subject = { label: string; caller?: Caller }

const matchesAny = (wanted: readonly string[] | undefined, have: readonly string[]) =>
  !!wanted && (wanted.includes('*') || wanted.some((name) => have.includes(name)))

/** Returns whether a rule applies to a caller, as the server decides it. */
export function appliesTo(rule: Rule, caller: Caller | undefined): boolean {
  const { guest, roleBased, workspaceRoleBased, workspaceLabelsBased } = rule
  const workspace = caller?.workspace
  const isNamed =
    !!guest ||
    (!!caller && matchesAny(roleBased, caller.roles)) ||
    (!!workspace && matchesAny(workspaceRoleBased, workspace.roles))
  return (
    isNamed && (!workspaceLabelsBased?.length || (!!workspace && matchesAny(workspaceLabelsBased, workspace.labels)))
  )
}

/** Returns the scopes that a caller reaches with an operation; none, when no rule allows it. */
export function reachOf(
  rules: readonly Rule[],
  usualScope: Scope,
  operation: Operation,
  caller: Caller | undefined,
): Scope[] {
  if (caller?.roles.includes('admin')) return ['tenant']
  const scopes = new Set(
    rules
      .filter((rule) => rule.operation === operation && appliesTo(rule, caller))
      .map(({ scope }) => scope ?? usualScope),
  )
  if (scopes.has('tenant')) return ['tenant']
  // Guests own nothing, and without a workspace nothing belongs to it.
  if (!caller && operation !== 'create') scopes.delete('user')
  if (!caller?.workspace) scopes.delete('workspace')
  return [...scopes]
}

/** Returns whether a caller may read or write a field of an entity that they may read or write. */
export function mayUseField(field: Field, part: 'readRoles' | 'writeRoles', caller: Caller | undefined): boolean {
  const roles = field[part]
  if (!roles?.length) return true
  return !!caller && (caller.roles.includes('admin') || matchesAny(roles, caller.roles))
}

const namesOf = (lists: (string[] | undefined)[]) =>
  [...new Set(lists.flatMap((list) => list ?? []))].filter((name) => name !== '*').sort()

/** Returns the callers between whom the rules and fields make a difference. */
export function listSubjects(rules: readonly Rule[], fields: readonly Field[]): Subject[] {
  const roles = namesOf([
    ...rules.map(({ roleBased }) => roleBased),
    ...fields.flatMap(({ readRoles, writeRoles }) => [readRoles, writeRoles]),
  ]).filter((role) => role !== 'admin' && role !== 'user')
  const workspaceRoles = namesOf(rules.map(({ workspaceRoleBased }) => workspaceRoleBased))
  const labels = namesOf(rules.map(({ workspaceLabelsBased }) => workspaceLabelsBased))
  const hasWorkspaces = rules.some(
    ({ scope, workspaceRoleBased }) => scope === 'workspace' || workspaceRoleBased?.includes('*'),
  )
  const member = (label: string, own: string[], ownLabels: string[] = []): Subject => ({
    label,
    caller: { roles: ['user'], workspace: { roles: own, labels: ownLabels } },
  })
  return [
    { label: 'Guests' },
    { label: 'Signed in', caller: { roles: ['user'] } },
    ...roles.map((role) => ({ label: `Role ${role}`, caller: { roles: ['user', role] } })),
    ...(hasWorkspaces || workspaceRoles.length || labels.length ? [member('In a workspace', [''])] : []),
    ...workspaceRoles.map((role) => member(`Workspace role ${role}`, [role])),
    ...labels.map((label) => member(`In a workspace, label ${label}`, workspaceRoles, [label])),
    { label: 'Role admin', caller: { roles: ['admin'] } },
  ]
}
