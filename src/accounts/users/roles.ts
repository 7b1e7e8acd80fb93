import type { Ctx } from '../guard'
import { catalog } from '../permissions'
import { users } from '../tables'

/** The roles that there are anyway, and those that somebody has. */
export async function roles({ db }: Pick<Ctx, 'db'>): Promise<string[]> {
  const lists = await db.selectDistinct({ roles: users.roles }).from(users)
  return [...new Set([...catalog, ...lists.flatMap(({ roles }) => roles)])].sort()
}
