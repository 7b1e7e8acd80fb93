import type { Static } from 'elysia'
import { rolesOf } from '../accounts/actors'
import type { Ctx } from '../accounts/guard'
import { isPrivileged } from '../accounts/permissions'
import { reach as reachWorkspace } from '../accounts/workspaces/reach'
import { missing } from '../core/problem'
import { given } from '../core/shapes'
import { modelOf } from './blueprints'
import type { Model } from './model'
import { admits, applies, type Caller, names, type Reach, reachOf, scopeOf } from './rules'
import {
  type Explained,
  type Explanation,
  type ExplanationQuery,
  type Operation,
  operations,
  type Rule,
} from './shapes'

/** Why a user of the tenant may or may not, in a workspace or outside of all; without a user, a guest. @throws 404 */
export async function explain(
  ctx: Ctx,
  key: string,
  { user, workspace, operation }: Static<typeof ExplanationQuery>,
): Promise<Static<typeof Explanation>> {
  const model = await modelOf(ctx, key)
  const [whom, where] = [given(user), given(workspace)]
  const caller = whom ? await callerFor(ctx, whom, where) : undefined
  const asked = operation && operation !== 'undefined' ? [operation] : operations
  return {
    blueprint: key,
    user: caller ? { _id: caller.user, roles: caller.roles } : null,
    workspace: caller?.workspace ?? null,
    operations: asked.map((operation) => explained(model, operation, caller)),
  }
}

/** The user as they come in by a credential of their own. */
async function callerFor(ctx: Ctx, user: string, id: string | undefined): Promise<Caller> {
  const roles = (await rolesOf(ctx, user)) ?? missing('user')
  const privileged = isPrivileged(roles)
  if (!id) return { user, roles, privileged, workspace: null }
  const { workspace, roles: own } = await reachWorkspace(ctx.db, { user, privileged }, id)
  const { _id, name, labels } = workspace
  return { user, roles, privileged, workspace: { _id, name, roles: own, labels } }
}

function explained(model: Model, operation: Operation, caller: Caller | undefined): Static<typeof Explained> {
  const rules = (model.permissions ?? [])
    .map((rule, index) => ({ index, rule, applies: applies(rule, caller), because: because(model, rule, caller) }))
    .filter(({ rule }) => rule.operation === operation)
  const reach = reachOf(model, operation, caller)
  return {
    operation,
    allowed: !!reach,
    reach: reach ? { user: null, workspace: null, ...reach } : null,
    because: inShort(model, operation, caller, reach, rules),
    rules,
  }
}

function inShort(
  model: Model,
  operation: Operation,
  caller: Caller | undefined,
  reach: Reach | undefined,
  rules: { index: number; applies: boolean }[],
) {
  const who = caller ? 'This user' : 'A guest'
  if (caller?.privileged) return 'Admins may do everything, whatever the rules say.'
  const applying = rules.filter(({ applies }) => applies).map(({ index }) => index)
  const which = `${applying.length > 1 ? 'Rules' : 'Rule'} ${listed(applying)} ${applying.length > 1 ? 'allow' : 'allows'} it`
  if (reach) return `${which}: ${who.toLowerCase()} may ${operation} ${reached(reach, operation)}.`
  if (applying.length) return `${which} only in a workspace, and ${who.toLowerCase()} is in none.`
  if (!model.permissions?.length) return 'The blueprint has no rules, so it is for admins only.'
  if (!rules.length) return `No rule of the blueprint is about ${operation}.`
  return `No rule about ${operation} is for ${who.toLowerCase()}.`
}

function reached(reach: Reach, operation: Operation) {
  if (operation === 'create') return 'entities of their own'
  if (reach.all) return 'all entities'
  const parts = [
    ...(reach.user === undefined ? [] : ['their own entities']),
    ...(reach.workspace === undefined ? [] : ['those of their active workspace']),
  ]
  return parts.join(' and ') || 'none of the entities, because none are their own'
}

function because(model: Model, rule: Rule, caller: Caller | undefined) {
  const { guest, roleBased = [], workspaceRoleBased = [], workspaceLabelsBased = [] } = rule
  if (names(rule, caller) && !admits(rule, caller))
    return caller?.workspace
      ? `The active workspace has none of the labels ${listed(workspaceLabelsBased)}.`
      : `It asks for a workspace with one of the labels ${listed(workspaceLabelsBased)}, and there is no active one.`
  if (applies(rule, caller)) return `It ${why(rule, caller)}. Its scope is ${scopeOf(model, rule)}.`
  if (!caller) return 'It is not for guests.'
  const wanted = [
    ...(roleBased.length ? [`one of the roles ${listed(roleBased)}`] : []),
    ...(workspaceRoleBased.length ? [`one of the roles ${listed(workspaceRoleBased)} in the active workspace`] : []),
  ]
  return guest || !wanted.length ? 'It is for nobody.' : `It asks for ${wanted.join(' or ')}.`
}

function why({ guest, roleBased = [], workspaceRoleBased = [] }: Rule, caller: Caller | undefined) {
  if (guest) return 'is for everybody, guests too'
  if (roleBased.includes('*')) return 'is for everybody who is signed in'
  const roles = roleBased.filter((role) => caller?.roles.includes(role))
  if (roles.length) return `is for the role ${listed(roles)}`
  return `is for ${workspaceRoleBased.includes('*') ? 'everybody' : listed(workspaceRoleBased)} in the active workspace`
}

const listed = (all: (string | number)[]) => all.slice(0, 20).join(', ') + (all.length > 20 ? ', …' : '')
