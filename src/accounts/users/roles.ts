import type { Ctx } from '../context'
import { BUILT_IN_USER_ROLES } from '../permissions'
import { users } from '../tables'

/** The roles that there are anyway, and those that somebody has. */
export async function listRoles({ db }: Pick<Ctx, 'db'>): Promise<string[]> {
  const lists = await db.selectDistinct({ roles: users.roles }).from(users)
  return [...new Set([...BUILT_IN_USER_ROLES, ...lists.flatMap(({ roles }) => roles)])].sort()
}
