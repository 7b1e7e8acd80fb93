import { useQuery } from '@tanstack/react-query'
import { meQuery } from './queries'

/** The roles that write blueprints. */
export const BLUEPRINT_ROLES = ['admin', 'plugin'] as const

/** Returns whether the signed-in user has one of these roles. The server decides about each request anyway. */
export function useHasRole(roles: readonly string[]): boolean {
  const { data: me } = useQuery(meQuery)
  return roles.some((role) => me?.roles.includes(role))
}
