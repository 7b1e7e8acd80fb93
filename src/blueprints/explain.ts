import type { Static } from 'elysia'
import { findRoles } from '../accounts/actors'
import type { Ctx } from '../accounts/context'
import { getWorkspaceAccess } from '../accounts/memberships/workspace-access'
import { isPrivileged } from '../accounts/permissions'
import { notFound } from '../core/problem'
import { parseOptional } from '../core/shapes'
import { appliesTo, matchesCaller, matchesLabels, ruleScopeOf } from './access-rules'
import { getModel } from './blueprints'
import type { Model } from './model'
import { type Caller, type RowScope, rowScopeOf } from './permissions'
import {
  type ExplanationQuery,
  type Operation,
  type OperationExplanation,
  operations,
  type PermissionExplanation,
  type Rule,
} from './shapes'

/** Explains which operations a user, or a guest, may do with entities, in a workspace or without one. @throws 404 */
export async function explain(
  ctx: Ctx,
  key: string,
  { user, workspace, operation }: Static<typeof ExplanationQuery>,
): Promise<Static<typeof PermissionExplanation>> {
  const model = await getModel(ctx, key)
  const [userId, workspaceId] = [parseOptional(user), parseOptional(workspace)]
  const caller = userId ? await resolveCaller(ctx, userId, workspaceId) : undefined
  const requestedOperations = operation && operation !== 'undefined' ? [operation] : operations
  return {
    blueprint: key,
    user: caller ? { _id: caller.user, roles: caller.roles } : null,
    workspace: caller?.workspace ?? null,
    operations: requestedOperations.map((operation) => explainOperation(model, operation, caller)),
  }
}

/** Returns the user as a caller who signed in with a credential of their own. @throws 404 */
async function resolveCaller(ctx: Ctx, user: string, id: string | undefined): Promise<Caller> {
  const roles = (await findRoles(ctx, user)) ?? notFound('user')
  const privileged = isPrivileged(roles)
  if (!id) return { user, roles, privileged, workspace: null }
  const { workspace, roles: own } = await getWorkspaceAccess(ctx.db, { user, privileged }, id)
  const { _id, name, labels } = workspace
  return { user, roles, privileged, workspace: { _id, name, roles: own, labels } }
}

function explainOperation(
  model: Model,
  operation: Operation,
  caller: Caller | undefined,
): Static<typeof OperationExplanation> {
  const rules = (model.permissions ?? [])
    .map((rule, index) => ({
      index,
      rule,
      applies: appliesTo(rule, caller),
      because: explainRule(model, rule, caller),
    }))
    .filter(({ rule }) => rule.operation === operation)
  const rowScope = rowScopeOf(model, operation, caller)
  return {
    operation,
    allowed: !!rowScope,
    reach: rowScope ? { user: null, workspace: null, ...rowScope } : null,
    because: summarize(model, operation, caller, rowScope, rules),
    rules,
  }
}

function summarize(
  model: Model,
  operation: Operation,
  caller: Caller | undefined,
  rowScope: RowScope | undefined,
  rules: { index: number; applies: boolean }[],
) {
  const subject = caller ? 'This user' : 'A guest'
  if (caller?.privileged) return 'Admins may do everything, whatever the rules say.'
  const applying = rules.filter(({ applies }) => applies).map(({ index }) => index)
  const matchingRules = `${applying.length > 1 ? 'Rules' : 'Rule'} ${formatList(applying)} ${applying.length > 1 ? 'allow' : 'allows'} it`
  if (rowScope)
    return `${matchingRules}: ${subject.toLowerCase()} may ${operation} ${describeScope(rowScope, operation)}.`
  if (applying.length) return `${matchingRules} only in a workspace, and ${subject.toLowerCase()} is in none.`
  if (!model.permissions?.length) return 'The blueprint has no rules, so it is for admins only.'
  if (!rules.length) return `No rule of the blueprint is about ${operation}.`
  return `No rule about ${operation} is for ${subject.toLowerCase()}.`
}

function describeScope(rowScope: RowScope, operation: Operation) {
  if (operation === 'create') return 'entities of their own'
  if (rowScope.all) return 'all entities'
  const parts = [
    ...(rowScope.user === undefined
      ? []
      : [`their own entities${rowScope.within === undefined ? '' : ' in that workspace'}`]),
    ...(rowScope.workspace === undefined ? [] : ['those of their active workspace']),
  ]
  return parts.join(' and ') || 'none of the entities, because none are their own'
}

function explainRule(model: Model, rule: Rule, caller: Caller | undefined) {
  const { guest, roleBased = [], workspaceRoleBased = [], workspaceLabelsBased = [] } = rule
  if (matchesCaller(rule, caller) && !matchesLabels(rule, caller))
    return caller?.workspace
      ? `The active workspace has none of the labels ${formatList(workspaceLabelsBased)}.`
      : `It asks for a workspace with one of the labels ${formatList(workspaceLabelsBased)}, and there is no active one.`
  if (appliesTo(rule, caller))
    return `It ${describeMatch(rule, caller)}. Its scope is ${ruleScopeOf(model.permissionScope, rule)}.`
  if (!caller) return 'It is not for guests.'
  const requirements = [
    ...(roleBased.length ? [`one of the roles ${formatList(roleBased)}`] : []),
    ...(workspaceRoleBased.length
      ? [`one of the roles ${formatList(workspaceRoleBased)} in the active workspace`]
      : []),
  ]
  return guest || !requirements.length ? 'It applies to no caller.' : `It asks for ${requirements.join(' or ')}.`
}

function describeMatch({ guest, roleBased = [], workspaceRoleBased = [] }: Rule, caller: Caller | undefined) {
  if (guest) return 'is for everyone, including guests'
  if (roleBased.includes('*')) return 'is for every signed-in user'
  const roles = roleBased.filter((role) => caller?.roles.includes(role))
  if (roles.length) return `is for the role ${formatList(roles)}`
  return `is for ${workspaceRoleBased.includes('*') ? 'everybody' : formatList(workspaceRoleBased)} in the active workspace`
}

const formatList = (all: (string | number)[]) => all.slice(0, 20).join(', ') + (all.length > 20 ? ', …' : '')
