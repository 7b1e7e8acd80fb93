import type { Actor } from '../accounts/actors'
import { Problem } from '../core/problem'
import type { Model, ModelField } from './model'
import type { Operation, Rule, Scope } from './shapes'

/** What rules need to know of who asks. */
export type Caller = Pick<Actor, 'user' | 'roles' | 'privileged' | 'workspace'>

/**
 * The rows that a caller reaches with an operation: all, or the union of their own and their workspace's; undefined
 * when no rule applies.
 */
export type RowScope = { all: true } | { all: false; user?: string; workspace?: string }

/** Resolves a blueprint's rules for a caller. Neither changes: whoever has other roles is another actor. */
export function rowScopeOf(model: Model, operation: Operation, actor: Caller | undefined): RowScope | undefined {
  if (actor?.privileged) return ALL_ROWS
  const scopesByOperation = cachedRowScopes(model, actor)
  if (!scopesByOperation.has(operation)) scopesByOperation.set(operation, resolveRowScope(model, operation, actor))
  return scopesByOperation.get(operation)
}

const ALL_ROWS: RowScope = { all: true }
const GUEST_CACHE_KEY = {}

type RowScopesByOperation = Map<Operation, RowScope | undefined>
const rowScopesByModel = new WeakMap<Model, WeakMap<object, RowScopesByOperation>>()

function cachedRowScopes(model: Model, actor: Caller | undefined): RowScopesByOperation {
  const callers = rowScopesByModel.get(model) ?? new WeakMap<object, RowScopesByOperation>()
  rowScopesByModel.set(model, callers)
  const scopesByOperation = callers.get(actor ?? GUEST_CACHE_KEY) ?? new Map()
  callers.set(actor ?? GUEST_CACHE_KEY, scopesByOperation)
  return scopesByOperation
}

function resolveRowScope(model: Model, operation: Operation, actor: Caller | undefined): RowScope | undefined {
  const scopes = new Set(
    (model.permissions ?? [])
      .filter((rule) => rule.operation === operation && appliesTo(rule, actor))
      .map((rule) => ruleScopeOf(model, rule)),
  )
  // What is made in the name of a workspace needs one to be made in.
  if (operation === 'create' && !actor?.workspace) scopes.delete('workspace')
  if (!scopes.size) return
  if (scopes.has('tenant')) return ALL_ROWS
  const rowScope: RowScope = { all: false }
  if (scopes.has('user') && actor) rowScope.user = actor.user
  if (scopes.has('workspace') && actor?.workspace) rowScope.workspace = actor.workspace._id
  return rowScope
}

/** A rule's own scope, or else its blueprint's. */
export const ruleScopeOf = (
  { permissionScope = 'user' }: Pick<Model, 'permissionScope'>,
  { scope }: Pick<Rule, 'scope'>,
): Scope => scope ?? permissionScope

/** The reach, or 403; 401 for a guest whom signing in could help. */
export function requireRowScope(model: Model, operation: Operation, actor: Caller | undefined): RowScope {
  const rowScope = rowScopeOf(model, operation, actor)
  if (rowScope) return rowScope
  if (!actor && model.permissions?.some((rule) => rule.operation === operation && !isForGuests(rule)))
    throw new Problem(401, 'UNAUTHENTICATED', 'Sign in first, or send an API token.')
  const needsWorkspace = model.permissions?.some((rule) => rule.operation === operation && appliesTo(rule, actor))
  throw new Problem(
    403,
    'FORBIDDEN',
    needsWorkspace
      ? `You may create entities of "${model.key}" only in a workspace. Activate one first.`
      : `No rule of the blueprint "${model.key}" allows you to ${operation} its entities.`,
  )
}

/** Whether a row is within reach. */
export const isInScope = (rowScope: RowScope, row: { user: string | null; workspace: string | null }) =>
  rowScope.all ||
  (rowScope.user !== undefined && row.user === rowScope.user) ||
  (rowScope.workspace !== undefined && row.workspace === rowScope.workspace)

/** Whether any rule at all is for this caller. */
export const isVisibleTo = (model: Model, actor: Caller | undefined) =>
  !!actor?.privileged || !!model.permissions?.some((rule) => appliesTo(rule, actor))

export const mayReadField = (field: Pick<ModelField, 'readRoles'>, actor: Caller | undefined) =>
  hasFieldRole(field.readRoles, actor)
export const mayWriteField = (field: Pick<ModelField, 'writeRoles'>, actor: Caller | undefined) =>
  hasFieldRole(field.writeRoles, actor)

const hasFieldRole = (roles: string[] | undefined, actor: Caller | undefined) =>
  !roles?.length || (!!actor && (actor.privileged || matchesAny(roles, actor.roles)))

/** Whether a rule is for this caller. */
export const appliesTo = (rule: Rule, actor: Caller | undefined) =>
  matchesCaller(rule, actor) && matchesLabels(rule, actor)

/** Whether a rule names the caller: as anybody, by a role, or by a role in the active workspace. */
export const matchesCaller = ({ guest, roleBased, workspaceRoleBased }: Rule, actor: Caller | undefined) =>
  !!guest ||
  (!!actor && matchesAny(roleBased, actor.roles)) ||
  (!!actor?.workspace && matchesAny(workspaceRoleBased, actor.workspace.roles))

/** Whether the active workspace has a label that the rule asks for, if it asks for any. */
export const matchesLabels = ({ workspaceLabelsBased }: Rule, actor: Caller | undefined) =>
  !workspaceLabelsBased?.length || (!!actor?.workspace && matchesAny(workspaceLabelsBased, actor.workspace.labels))

/** Guests are in no workspace, so a rule that asks for labels is not for them, whatever it says. */
const isForGuests = ({ guest, workspaceLabelsBased }: Rule) => guest && !workspaceLabelsBased?.length

/** Whether one of the names is among those that are had; `*` is any, or none. */
export const matchesAny = (wanted: string[] | undefined, have: string[]) =>
  !!wanted && (wanted.includes('*') || wanted.some((one) => have.includes(one)))
