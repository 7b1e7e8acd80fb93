import * as rules from '../../blueprints/access-rules'
import type { Field, Rule } from '../api/schema'
import type { Operation, Scope } from './rule-sentences'

/** Somebody who asks: their roles, and those in their active workspace with its labels. */
export type Caller = { roles: string[]; workspace?: { roles: string[]; labels: string[] } }

/** A row of the matrix: a kind of callers, or guests without one. */
export type Subject = { label: string; caller?: Caller }

const toRuleCaller = (caller: Caller | undefined): rules.RuleCaller | undefined =>
  caller && { ...caller, privileged: caller.roles.includes('admin'), workspace: caller.workspace ?? null }

/** Returns whether a rule applies to a caller. */
export const appliesTo = (rule: Rule, caller: Caller | undefined) => rules.appliesTo(rule, toRuleCaller(caller))

/** Returns the scopes that a caller reaches with an operation; none, when no rule allows it. */
export function reachOf(
  permissions: readonly Rule[],
  defaultScope: Scope,
  operation: Operation,
  caller: Caller | undefined,
): Scope[] {
  if (caller?.roles.includes('admin')) return ['tenant']
  const scopes = rules.grantedScopes(permissions, defaultScope, operation, toRuleCaller(caller))
  if (scopes.has('tenant')) return ['tenant']
  // Guests own nothing, and without a workspace nothing belongs to it.
  if (!caller && operation !== 'create') scopes.delete('user')
  if (!caller?.workspace) scopes.delete('workspace')
  return [...scopes]
}

/** Returns whether a caller may read or write a field of an entity that they may read or write. */
export const mayUseField = (field: Field, part: 'readRoles' | 'writeRoles', caller: Caller | undefined) =>
  rules.hasFieldRole(field[part], toRuleCaller(caller))

const namesOf = (lists: (string[] | undefined)[]) =>
  [...new Set(lists.flatMap((list) => list ?? []))].filter((name) => name !== '*').sort()

/** Returns the callers between whom the rules and fields make a difference. */
export function listSubjects(permissions: readonly Rule[], fields: readonly Field[]): Subject[] {
  const roles = namesOf([
    ...permissions.map(({ roleBased }) => roleBased),
    ...fields.flatMap(({ readRoles, writeRoles }) => [readRoles, writeRoles]),
  ]).filter((role) => role !== 'admin' && role !== 'user')
  const workspaceRoles = namesOf(permissions.map(({ workspaceRoleBased }) => workspaceRoleBased))
  const labels = namesOf(permissions.map(({ workspaceLabelsBased }) => workspaceLabelsBased))
  const hasWorkspaces = permissions.some(
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
