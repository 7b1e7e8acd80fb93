import type { Db } from '../storage/port'

/**
 * Returns the number of entities of a workspace. The statement names the blueprints because the index begins with them.
 */
export async function countInWorkspace(db: Db, workspace: string): Promise<number> {
  const where = 'workspace = ? and blueprint in (select code from blueprints)'
  const [row] = await db.query(`select count(*) from entities where ${where}`, [workspace])
  return Number(row![0])
}
