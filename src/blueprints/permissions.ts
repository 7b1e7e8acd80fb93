import type { Actor } from '../accounts/actors'
import { BoundedMap } from '../core/bounded-map'
import { Problem } from '../core/problem'
import { weakCached } from '../core/weak-cache'
import { appliesTo, grantedScopes, hasFieldRole } from './access-rules'
import type { Model, ModelField } from './model'
import type { Operation, Rule, Scope } from './shapes'

/** The properties of a caller that rules depend on. */
export type Caller = Pick<Actor, 'user' | 'roles' | 'privileged' | 'workspace' | 'token'>

/**
 * The rows that a caller reaches with an operation: all, or the union of the caller's own and those of the workspace.
 * `within`: of the caller's own only those of this workspace, because a bound token acts only there.
 */
export type RowScope = { all: true } | { all: false; user?: string; within?: string; workspace?: string }

/** Returns the rows that a caller reaches, or undefined when no rule applies. */
export function rowScopeOf(model: Model, operation: Operation, actor: Caller | undefined): RowScope | undefined {
  if (actor?.privileged) return ALL_ROWS
  const scopes = listScopes(model, operation, actor)
  if (!scopes.size) return
  if (scopes.has('tenant')) return ALL_ROWS
  const workspace = actor?.workspace?._id
  const rowScope: RowScope = { all: false }
  if (scopes.has('workspace') && workspace !== undefined) rowScope.workspace = workspace
  if (!scopes.has('user') || !actor) return rowScope
  if (!actor.token?.bound) return { ...rowScope, user: actor.user }
  // The rows of the workspace contain those of its own.
  return rowScope.workspace === undefined ? { all: false, user: actor.user, within: workspace } : rowScope
}

const ALL_ROWS: RowScope = { all: true }

/** The permissions of all callers with the same rights: scopes by operation, and the keys of hidden fields. */
type Grants = { scopes: Map<Operation, Set<Scope>>; hiddenKeys?: string[] }

const MAX_RIGHTS_PER_MODEL = 1_000
const grantsByRights = weakCached((_: Model) => new BoundedMap<string, Grants>(MAX_RIGHTS_PER_MODEL))

/** Returns a key of the rights of a caller. Callers are immutable: other roles make another caller. */
const toRights = weakCached(({ privileged, roles, workspace }: Caller) =>
  JSON.stringify([privileged, roles, workspace && [workspace.roles, workspace.labels]]),
)

function grantsOf(model: Model, actor: Caller | undefined): Grants {
  const rights = actor ? toRights(actor) : 'guest'
  const existing = grantsByRights(model).get(rights)
  if (existing) return existing
  const grants: Grants = { scopes: new Map() }
  grantsByRights(model).set(rights, grants)
  return grants
}

/** Returns the scopes of the rules that apply to a caller. */
function listScopes(model: Model, operation: Operation, actor: Caller | undefined): Set<Scope> {
  const { scopes } = grantsOf(model, actor)
  const existing = scopes.get(operation)
  if (existing) return existing
  const granted = grantedScopes(model.permissions ?? [], model.permissionScope, operation, actor)
  scopes.set(operation, granted)
  return granted
}

/** Returns the keys of the fields that a caller may not read. */
export function listHiddenKeys(model: Model, actor: Caller | undefined): string[] {
  const grants = grantsOf(model, actor)
  grants.hiddenKeys ??= model.fields.filter((field) => !mayReadField(field, actor)).map(({ key }) => key)
  return grants.hiddenKeys
}

/** Returns the rows that a caller reaches. @throws 401 for guests when signing in could help, 403 */
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

/** Returns whether a row is in the scope. */
export const isInScope = (rowScope: RowScope, row: { user: string | null; workspace: string | null }) =>
  rowScope.all ||
  (rowScope.user !== undefined &&
    row.user === rowScope.user &&
    (rowScope.within === undefined || row.workspace === rowScope.within)) ||
  (rowScope.workspace !== undefined && row.workspace === rowScope.workspace)

/** Returns whether all rows of one owner are the scope. */
export const isOfOneOwner = (rowScope: RowScope) =>
  !rowScope.all && rowScope.within === undefined && (rowScope.user === undefined || rowScope.workspace === undefined)

/** Returns whether any rule applies to this caller. */
export const isVisibleTo = (model: Model, actor: Caller | undefined) =>
  !!actor?.privileged || !!model.permissions?.some((rule) => appliesTo(rule, actor))

export const mayReadField = (field: Pick<ModelField, 'readRoles'>, actor: Caller | undefined) =>
  hasFieldRole(field.readRoles, actor)
export const mayWriteField = (field: Pick<ModelField, 'writeRoles'>, actor: Caller | undefined) =>
  hasFieldRole(field.writeRoles, actor)

/** Guests are in no workspace, so a rule with labels never applies to them. */
const isForGuests = ({ guest, workspaceLabelsBased }: Rule) => guest && !workspaceLabelsBased?.length
