// How rules are evaluated, for the server and for the admin page, which shows what a rule allows before it is saved.

type Operation = 'create' | 'read' | 'update' | 'delete'
type Scope = 'user' | 'workspace' | 'tenant'
type Rule = {
  operation: Operation
  scope?: Scope
  guest?: boolean
  roleBased?: string[]
  workspaceRoleBased?: string[]
  workspaceLabelsBased?: string[]
}

/** The properties of a caller that rules depend on. */
export type RuleCaller = {
  roles: string[]
  privileged: boolean
  workspace: { roles: string[]; labels: string[] } | null
}

/** Returns whether a rule applies to this caller. */
export const appliesTo = (rule: Rule, caller: RuleCaller | undefined) =>
  matchesCaller(rule, caller) && matchesLabels(rule, caller)

/** Returns whether a rule names the caller: as a guest, by a role, or by a role in the active workspace. */
export const matchesCaller = ({ guest, roleBased, workspaceRoleBased }: Rule, caller: RuleCaller | undefined) =>
  !!guest ||
  (!!caller && matchesAny(roleBased, caller.roles)) ||
  (!!caller?.workspace && matchesAny(workspaceRoleBased, caller.workspace.roles))

/** Returns whether the active workspace has a label of the rule, or the rule has none. */
export const matchesLabels = ({ workspaceLabelsBased }: Rule, caller: RuleCaller | undefined) =>
  !workspaceLabelsBased?.length || (!!caller?.workspace && matchesAny(workspaceLabelsBased, caller.workspace.labels))

/** Returns the scopes of the rules that apply to a caller. */
export function grantedScopes(
  rules: readonly Rule[],
  defaultScope: Scope | undefined,
  operation: Operation,
  caller: RuleCaller | undefined,
): Set<Scope> {
  const applying = rules.filter((rule) => rule.operation === operation && appliesTo(rule, caller))
  const scopes = new Set(applying.map((rule) => ruleScopeOf(defaultScope, rule)))
  // An entity of a workspace can only be created in a workspace.
  if (operation === 'create' && !caller?.workspace) scopes.delete('workspace')
  return scopes
}

/** Returns the scope of a rule, which defaults to that of its blueprint. */
export const ruleScopeOf = (defaultScope: Scope = 'user', { scope }: Pick<Rule, 'scope'>): Scope =>
  scope ?? defaultScope

/** Returns whether a caller has one of the roles that a field requires. */
export const hasFieldRole = (roles: string[] | undefined, caller: RuleCaller | undefined) =>
  !roles?.length || (!!caller && (caller.privileged || matchesAny(roles, caller.roles)))

/** Returns whether `have` contains one of the wanted names; `*` always matches. */
export const matchesAny = (wanted: string[] | undefined, have: string[]) =>
  !!wanted && (wanted.includes('*') || wanted.some((name) => have.includes(name)))
