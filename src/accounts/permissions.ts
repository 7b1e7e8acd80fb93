import type { Actor } from './actors'

/** What a route can ask of its caller. */
export type Permission = 'user' | 'editor' | 'privileged'

/** The roles that exist without anybody having them. */
export const catalog = ['admin', 'plugin', 'user']

const EDITORS = ['admin', 'plugin']

export const isPrivileged = (roles: string[]) => roles.includes('admin')

/** Whether these roles suffice for a permission. */
export function may({ roles }: Pick<Actor, 'roles'>, permission: Permission) {
  if (permission === 'privileged') return isPrivileged(roles)
  if (permission === 'editor') return roles.some((role) => EDITORS.includes(role))
  return true
}

/** Whether an API token is good for this: one without scopes for everything, `write` also reads. */
export function within(scopes: string[], area: string, mode: 'read' | 'write') {
  return !scopes.length || scopes.includes(`${area}:write`) || (mode === 'read' && scopes.includes(`${area}:read`))
}
