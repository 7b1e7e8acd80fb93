import type { Db } from '../storage/port'

/** How many entities belong to a workspace. The index begins with the blueprint. */
export async function countInWorkspace(db: Db, workspace: string): Promise<number> {
  const where = 'workspace = ? and blueprint in (select key from blueprints)'
  const [row] = await db.query(`select count(*) from entities where ${where}`, [workspace])
  return Number(row![0])
}
