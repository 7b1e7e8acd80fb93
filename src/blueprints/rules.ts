import type { Actor } from '../accounts/actors'
import { Problem } from '../core/problem'
import type { Model, ModelField } from './model'
import type { Operation, Rule } from './shapes'

/**
 * The rows that a caller reaches with an operation: all, or the union of their own and their workspace's; undefined
 * when no rule applies.
 */
export type Reach = { all: true } | { all: false; user?: string; workspace?: string }

/** Resolves a blueprint's rules for a caller. Neither changes: whoever has other roles is another actor. */
export function reachOf(model: Model, operation: Operation, actor: Actor | undefined): Reach | undefined {
  if (actor?.privileged) return ALL
  const known = knownReaches(model, actor)
  if (!known.has(operation)) known.set(operation, resolved(model, operation, actor))
  return known.get(operation)
}

const ALL: Reach = { all: true }
const GUEST = {}

type Reaches = Map<Operation, Reach | undefined>
const reachesOf = new WeakMap<Model, WeakMap<object, Reaches>>()

function knownReaches(model: Model, actor: Actor | undefined): Reaches {
  const callers = reachesOf.get(model) ?? new WeakMap<object, Reaches>()
  reachesOf.set(model, callers)
  const known = callers.get(actor ?? GUEST) ?? new Map()
  callers.set(actor ?? GUEST, known)
  return known
}

function resolved(model: Model, operation: Operation, actor: Actor | undefined): Reach | undefined {
  const scopes = new Set(
    (model.permissions ?? [])
      .filter((rule) => rule.operation === operation && applies(rule, actor))
      .map((rule) => rule.scope ?? model.permissionScope ?? 'user'),
  )
  if (!scopes.size) return
  if (scopes.has('tenant')) return ALL
  const reach: Reach = { all: false }
  if (scopes.has('user') && actor) reach.user = actor.user
  if (scopes.has('workspace') && actor?.workspace) reach.workspace = actor.workspace._id
  return reach
}

/** The reach, or 403; 401 for a guest whom signing in could help. */
export function reachOrRefuse(model: Model, operation: Operation, actor: Actor | undefined): Reach {
  const reach = reachOf(model, operation, actor)
  if (reach) return reach
  if (!actor && model.permissions?.some((rule) => rule.operation === operation && !rule.guest))
    throw new Problem(401, 'UNAUTHENTICATED', 'Sign in first, or send an API token.')
  throw new Problem(
    403,
    'FORBIDDEN',
    `No rule of the blueprint "${model.key}" allows you to ${operation} its entities.`,
  )
}

/** Whether a row is within reach. */
export const reaches = (reach: Reach, row: { user: string | null; workspace: string | null }) =>
  reach.all ||
  (reach.user !== undefined && row.user === reach.user) ||
  (reach.workspace !== undefined && row.workspace === reach.workspace)

/** Whether any rule at all is for this caller. */
export const concerns = (model: Model, actor: Actor | undefined) =>
  !!actor?.privileged || !!model.permissions?.some((rule) => applies(rule, actor))

export const mayRead = (field: ModelField, actor: Actor | undefined) => has(field.readRoles, actor)
export const mayWrite = (field: ModelField, actor: Actor | undefined) => has(field.writeRoles, actor)

const has = (roles: string[] | undefined, actor: Actor | undefined) =>
  !roles?.length || !!actor?.privileged || !!actor?.roles.some((role) => roles.includes(role))

function applies({ guest, roleBased, workspaceRoleBased, workspaceLabelsBased }: Rule, actor: Actor | undefined) {
  const { roles = [], workspace } = actor ?? {}
  const named =
    guest || (actor && overlaps(roleBased, roles)) || (workspace && overlaps(workspaceRoleBased, workspace.roles))
  if (!named) return false
  return !workspaceLabelsBased?.length || (!!workspace && overlaps(workspaceLabelsBased, workspace.labels))
}

const overlaps = (wanted: string[] | undefined, have: string[]) =>
  !!wanted && (wanted.includes('*') || wanted.some((one) => have.includes(one)))
