import type { Rule } from '../api/schema'

export type Operation = Rule['operation']
export type Scope = NonNullable<Rule['scope']>

/** All operations, in the order in which an entity goes through them. */
export const OPERATIONS: readonly Operation[] = ['create', 'read', 'update', 'delete']

/** Returns names as a person lists them: a, b or c. */
export const listNames = (names: readonly string[], last = 'or') =>
  names.length < 2 ? (names[0] ?? '') : `${names.slice(0, -1).join(', ')} ${last} ${names.at(-1)}`

const WILDCARD = '*'
const plural = (word: string, names: readonly string[]) => (names.length === 1 ? word : `${word}s`)

/** Returns whom a rule is for, as the subject of a sentence. */
export function describeCallers({ guest, roleBased = [], workspaceRoleBased = [], workspaceLabelsBased = [] }: Rule) {
  const subjects: string[] = []
  if (guest) subjects.push('everybody, also guests,')
  else if (roleBased.includes(WILDCARD)) subjects.push('everybody who is signed in')
  else if (roleBased.length) subjects.push(`users with the ${plural('role', roleBased)} ${listNames(roleBased)}`)
  if (!guest && workspaceRoleBased.includes(WILDCARD)) subjects.push('members of a workspace')
  else if (!guest && workspaceRoleBased.length)
    subjects.push(`members with the workspace ${plural('role', workspaceRoleBased)} ${listNames(workspaceRoleBased)}`)
  const labels = workspaceLabelsBased.length
    ? ` in workspaces with the ${plural('label', workspaceLabelsBased)} ${listNames(workspaceLabelsBased)}`
    : ''
  const text = `${subjects.length ? listNames(subjects, 'and') : 'nobody'}${labels}`
  return text[0]!.toUpperCase() + text.slice(1)
}

/** Which rows each scope reaches, as the object of a sentence. */
const SCOPE_WORDS: Record<Scope, string> = {
  user: 'what is their own',
  workspace: 'what belongs to their workspace',
  tenant: 'everything',
}
const CREATION_WORDS: Record<Scope, string> = {
  user: 'entities of their own',
  workspace: 'entities of their workspace',
  tenant: 'entities',
}

/** Returns what an operation of a scope reaches, as the object of a sentence. */
export const describeScope = (operation: Operation, scope: Scope) =>
  (operation === 'create' ? CREATION_WORDS : SCOPE_WORDS)[scope]

/** Returns a rule as a sentence. */
export const describeRule = (rule: Rule, usualScope: Scope) =>
  `${describeCallers(rule)} may ${rule.operation} ${describeScope(rule.operation, rule.scope ?? usualScope)}.`
