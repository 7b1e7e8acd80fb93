import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import type { Blueprint, Rule } from '../api/schema'
import { appliesTo, type Caller, reachOf } from './access-evaluation'
import { OPERATIONS, type Operation, type Scope } from './rule-sentences'

/** What somebody may do with one operation, and which rules say so. */
export type Verdict = {
  operation: Operation
  scopes: Scope[]
  rules: { index: number; rule: Rule; applies: boolean; because?: string }[]
  /** Whose rows are reached. */
  user?: string
  workspace?: string
}

/** What a user, or a guest, may do by the saved rules, as the server decides it. */
export const explanationQuery = (key: string, user: string | undefined, workspace: string | undefined) =>
  queryOptions({
    queryKey: ['blueprints', key, 'explanation', user ?? '', workspace ?? ''],
    queryFn: async (): Promise<Verdict[]> => {
      const query = { ...(user && { user }), ...(workspace && { workspace }) }
      const { operations } = await fetchData(
        api.GET('/api/blueprints/{key}/permissions/explain', { params: { path: { key }, query } }),
      )
      return operations.map(({ operation, allowed, reach, rules }) => ({
        operation,
        scopes: allowed && reach ? toScopes(reach, operation) : [],
        rules,
        user: reach?.user ?? undefined,
        workspace: reach?.workspace ?? undefined,
      }))
    },
    retry: false,
  })

function toScopes(
  reach: { all: boolean; user: string | null; workspace: string | null },
  operation: Operation,
): Scope[] {
  if (reach.all) return ['tenant']
  const scopes: Scope[] = []
  if (reach.user !== null || operation === 'create') scopes.push('user')
  if (reach.workspace !== null) scopes.push('workspace')
  return scopes
}

/** Returns what callers with these roles may do by the rules of a blueprint. */
export function explainForCaller({ permissions = [], permissionScope = 'user' }: Blueprint, caller: Caller): Verdict[] {
  return OPERATIONS.map((operation) => ({
    operation,
    scopes: reachOf(permissions, permissionScope, operation, caller),
    rules: permissions
      .map((rule, index) => ({ index, rule, applies: appliesTo(rule, caller) }))
      .filter(({ rule }) => rule.operation === operation),
  }))
}
