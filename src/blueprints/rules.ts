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
export type Reach = { all: true } | { all: false; user?: string; workspace?: string }

/** Resolves a blueprint's rules for a caller. Neither changes: whoever has other roles is another actor. */
export function reachOf(model: Model, operation: Operation, actor: Caller | undefined): Reach | undefined {
  if (actor?.privileged) return ALL
  const known = knownReaches(model, actor)
  if (!known.has(operation)) known.set(operation, resolved(model, operation, actor))
  return known.get(operation)
}

const ALL: Reach = { all: true }
const GUEST = {}

type Reaches = Map<Operation, Reach | undefined>
const reachesOf = new WeakMap<Model, WeakMap<object, Reaches>>()

function knownReaches(model: Model, actor: Caller | undefined): Reaches {
  const callers = reachesOf.get(model) ?? new WeakMap<object, Reaches>()
  reachesOf.set(model, callers)
  const known = callers.get(actor ?? GUEST) ?? new Map()
  callers.set(actor ?? GUEST, known)
  return known
}

function resolved(model: Model, operation: Operation, actor: Caller | undefined): Reach | undefined {
  const scopes = new Set(
    (model.permissions ?? [])
      .filter((rule) => rule.operation === operation && applies(rule, actor))
      .map((rule) => scopeOf(model, rule)),
  )
  // What is made in the name of a workspace needs one to be made in.
  if (operation === 'create' && !actor?.workspace) scopes.delete('workspace')
  if (!scopes.size) return
  if (scopes.has('tenant')) return ALL
  const reach: Reach = { all: false }
  if (scopes.has('user') && actor) reach.user = actor.user
  if (scopes.has('workspace') && actor?.workspace) reach.workspace = actor.workspace._id
  return reach
}

/** A rule's own scope, or else its blueprint's. */
export const scopeOf = (
  { permissionScope = 'user' }: Pick<Model, 'permissionScope'>,
  { scope }: Pick<Rule, 'scope'>,
): Scope => scope ?? permissionScope

/** The reach, or 403; 401 for a guest whom signing in could help. */
export function reachOrRefuse(model: Model, operation: Operation, actor: Caller | undefined): Reach {
  const reach = reachOf(model, operation, actor)
  if (reach) return reach
  if (!actor && model.permissions?.some((rule) => rule.operation === operation && !forGuests(rule)))
    throw new Problem(401, 'UNAUTHENTICATED', 'Sign in first, or send an API token.')
  const homeless = model.permissions?.some((rule) => rule.operation === operation && applies(rule, actor))
  throw new Problem(
    403,
    'FORBIDDEN',
    homeless
      ? `You may create entities of "${model.key}" only in a workspace. Activate one first.`
      : `No rule of the blueprint "${model.key}" allows you to ${operation} its entities.`,
  )
}

/** Whether a row is within reach. */
export const reaches = (reach: Reach, row: { user: string | null; workspace: string | null }) =>
  reach.all ||
  (reach.user !== undefined && row.user === reach.user) ||
  (reach.workspace !== undefined && row.workspace === reach.workspace)

/** Whether any rule at all is for this caller. */
export const concerns = (model: Model, actor: Caller | undefined) =>
  !!actor?.privileged || !!model.permissions?.some((rule) => applies(rule, actor))

export const mayRead = (field: Pick<ModelField, 'readRoles'>, actor: Caller | undefined) => has(field.readRoles, actor)
export const mayWrite = (field: Pick<ModelField, 'writeRoles'>, actor: Caller | undefined) =>
  has(field.writeRoles, actor)

const has = (roles: string[] | undefined, actor: Caller | undefined) =>
  !roles?.length || (!!actor && (actor.privileged || holdsOne(roles, actor.roles)))

/** Whether a rule is for this caller. */
export const applies = (rule: Rule, actor: Caller | undefined) => names(rule, actor) && admits(rule, actor)

/** Whether a rule names the caller: as anybody, by a role, or by a role in the active workspace. */
export const names = ({ guest, roleBased, workspaceRoleBased }: Rule, actor: Caller | undefined) =>
  !!guest ||
  (!!actor && holdsOne(roleBased, actor.roles)) ||
  (!!actor?.workspace && holdsOne(workspaceRoleBased, actor.workspace.roles))

/** Whether the active workspace has a label that the rule asks for, if it asks for any. */
export const admits = ({ workspaceLabelsBased }: Rule, actor: Caller | undefined) =>
  !workspaceLabelsBased?.length || (!!actor?.workspace && holdsOne(workspaceLabelsBased, actor.workspace.labels))

/** Guests are in no workspace, so a rule that asks for labels is not for them, whatever it says. */
const forGuests = ({ guest, workspaceLabelsBased }: Rule) => guest && !workspaceLabelsBased?.length

/** Whether one of the names is among those that are had; `*` is any, or none. */
export const holdsOne = (wanted: string[] | undefined, have: string[]) =>
  !!wanted && (wanted.includes('*') || wanted.some((one) => have.includes(one)))
