import type { Db } from '../storage/port'

/** How many entities belong to a workspace. The index begins with the blueprint. */
export async function countOfWorkspace(db: Db, workspace: string): Promise<number> {
  const those = 'workspace = ? and blueprint in (select key from blueprints)'
  const [row] = await db.ask(`select count(*) from entities where ${those}`, [workspace])
  return Number(row![0])
}
