import { Problem } from '../core/problem'

/** What a route can ask of its caller. */
export type Permission = 'user' | 'oneself' | 'editor' | 'privileged' | 'curator' | 'teller'

/** The roles that exist without anybody having them. */
export const BUILT_IN_USER_ROLES = ['admin', 'plugin', 'user']

/** Who has one of these roles is allowed; without a list, whoever is signed in. */
const PERMITTED_ROLES: Record<Permission, string[] | undefined> = {
  user: undefined,
  /** The same, but nobody who acts as somebody else: sessions, tokens and passwords would outlive the request. */
  oneself: undefined,
  /** Makes blueprints and components. */
  editor: ['admin', 'plugin'],
  privileged: ['admin'],
  /** Reads what has happened. */
  curator: ['admin', 'editor'],
  /** Tells what has happened. */
  teller: ['admin', 'editor', 'plugin'],
}

export const isPrivileged = (roles: string[]) => roles.includes('admin')

/** Whether these roles suffice for a permission. */
export const hasPermission = ({ roles }: { roles: string[] }, permission: Permission) =>
  PERMITTED_ROLES[permission]?.some((role) => roles.includes(role)) ?? true

/** What callers are told whose roles do not suffice: which would. */
export const missingRoleMessage = (permission: Permission) =>
  `Only users with the role ${PERMITTED_ROLES[permission]?.join(' or ')} may do this.`

/** Whether an API token is good for this: one without scopes for everything, `write` also reads. */
export function scopesAllow(scopes: string[], area: string, mode: 'read' | 'write') {
  return !scopes.length || scopes.includes(`${area}:write`) || (mode === 'read' && scopes.includes(`${area}:read`))
}

/** @throws 403 for an API token that is not good for this; guests have none */
export function assertScope(actor: { scopes: string[] } | undefined, area: string, mode: 'read' | 'write') {
  if (actor && !scopesAllow(actor.scopes, area, mode))
    throw new Problem(403, 'FORBIDDEN', `This API token does not have the scope ${area}:${mode}.`)
}

/** A token that leaked must not be able to make others, or to see or remove them. @throws 403 for an API token */
export function assertNotApiToken({ actor }: { actor: { via: string } }) {
  if (actor.via === 'api-key')
    throw new Problem(403, 'FORBIDDEN', 'This requires a signed-in user. API tokens are not accepted.')
}
