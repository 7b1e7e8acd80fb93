import type { Ctx } from '../context'
import { BUILT_IN_USER_ROLES } from '../permissions'
import { users } from '../tables'

/** Returns the built-in roles and those that a user has, sorted. */
export async function listRoles({ db }: Pick<Ctx, 'db'>): Promise<string[]> {
  const lists = await db.selectDistinct({ roles: users.roles }).from(users)
  return [...new Set([...BUILT_IN_USER_ROLES, ...lists.flatMap(({ roles }) => roles)])].sort()
}
