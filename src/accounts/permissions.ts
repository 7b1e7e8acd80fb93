import { Problem } from '../core/problem'
import { suggestName } from '../core/unknown-keys'

/** A permission that a route can require of its caller. */
export type Permission = 'user' | 'oneself' | 'editor' | 'privileged' | 'curator' | 'teller'

/** The roles that exist even when no user has them. */
export const BUILT_IN_USER_ROLES = ['admin', 'plugin', 'user']

/** The roles of which a caller needs one; undefined admits every signed-in user. */
const PERMITTED_ROLES: Record<Permission, string[] | undefined> = {
  user: undefined,
  /** Excludes impersonation, because sessions, tokens and passwords would outlive the request. */
  oneself: undefined,
  /** Edits blueprints and components. */
  editor: ['admin', 'plugin'],
  privileged: ['admin'],
  /** Reads events. */
  curator: ['admin', 'editor'],
  /** Emits events. */
  teller: ['admin', 'editor', 'plugin'],
}

/** Returns whether a user with these roles administers the tenant. */
export const isPrivileged = (roles: string[]) => roles.includes('admin')

/** Returns whether these roles grant a permission. */
export const hasPermission = ({ roles }: { roles: string[] }, permission: Permission) =>
  PERMITTED_ROLES[permission]?.some((role) => roles.includes(role)) ?? true

/** Returns the message for callers whose roles do not grant a permission; it names those that do. */
export const missingRoleMessage = (permission: Permission) =>
  `Only users with the role ${PERMITTED_ROLES[permission]?.join(' or ')} may do this.`

/** The areas that the scopes of API tokens name: each has `:read` and `:write`. */
export const SCOPE_AREAS = [
  ...(['accounts', 'ai', 'blocks', 'blueprints', 'components', 'configurations', 'definitions', 'encrypted'] as const),
  ...(['entities', 'events', 'files', 'integrations', 'lambdas', 'mcp', 'payments', 'plugin-calls'] as const),
  ...(['plugins', 'sites', 'static', 'users', 'webhooks', 'workspaces'] as const),
]
export type ScopeArea = (typeof SCOPE_AREAS)[number]

const SCOPES = SCOPE_AREAS.flatMap((area) => [`${area}:read`, `${area}:write`])

/** Returns what is wrong with a scope, or undefined when it is one. */
export const findScopeError = (scope: string) =>
  SCOPES.includes(scope)
    ? undefined
    : `"${scope}" is not a scope.${suggestName(scope, SCOPES) || ` Use one of these areas with :read or :write: ${SCOPE_AREAS.join(', ')}.`}`

/**
 * Returns whether the scopes of an API token allow the access. A token without scopes may do everything, and `write`
 * includes `read`.
 */
export function scopesAllow(scopes: string[], area: ScopeArea, mode: 'read' | 'write') {
  return !scopes.length || scopes.includes(`${area}:write`) || (mode === 'read' && scopes.includes(`${area}:read`))
}

/** @throws 403 FORBIDDEN for an API token whose scopes do not allow the access; guests have no scopes */
export function assertScope(actor: { scopes: string[] } | undefined, area: ScopeArea, mode: 'read' | 'write') {
  if (actor && !scopesAllow(actor.scopes, area, mode))
    throw new Problem(403, 'FORBIDDEN', `This API token does not have the scope ${area}:${mode}.`)
}

/** The roles that reach beyond what rules of blueprints grant. */
const ELEVATED_ROLES = [...new Set(Object.values(PERMITTED_ROLES).flatMap((roles) => roles ?? []))]

/**
 * With the scope `users:write`, a token could otherwise take over an admin or another user with rights of their own, or
 * give itself such a user, and so have all rights.
 * @throws 403 FORBIDDEN for an API token with scopes when one of the users has, or gets, such a role
 */
export function assertMayManage({ scopes }: { scopes: string[] }, ...users: { roles?: string[] }[]) {
  const role = scopes.length && ELEVATED_ROLES.find((name) => users.some(({ roles }) => roles?.includes(name)))
  if (role)
    throw new Problem(
      403,
      'FORBIDDEN',
      `An API token with scopes cannot create, change or delete users with the role ${role}. Sign in, or use a token without scopes.`,
    )
}

/**
 * A leaked token must not be able to create, list or delete tokens.
 * @throws 403 FORBIDDEN for an API token
 */
export function assertNotApiToken({ actor }: { actor: { via: string } }) {
  if (actor.via === 'api-key')
    throw new Problem(403, 'FORBIDDEN', 'This requires a signed-in user. API tokens are not accepted.')
}
