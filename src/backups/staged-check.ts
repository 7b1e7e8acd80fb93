import { Problem } from '../core/problem'
import { queryDatabaseFile } from '../tenancy/databases'
import type { Manifest } from './manifest'

/**
 * Checks a restored file of a backup: SQLite can read all of it, and it has as many rows as the manifest says.
 * @throws 409 BACKUP_DAMAGED, which names the backup
 */
export async function assertSound(file: string, { content, rows }: Manifest, place: string): Promise<void> {
  const damaged = (reason: string, cause?: unknown) =>
    new Problem(409, 'BACKUP_DAMAGED', `The backup ${place} is damaged: ${reason}. Use another backup.`, { cause })
  const query = async (sql: string) => {
    try {
      return await queryDatabaseFile(file, sql)
    } catch (cause) {
      throw damaged(`its database cannot be read (${(cause as Error).message.replace(/\.$/, '')})`, cause)
    }
  }
  const [[flaw] = []] = await query('pragma quick_check(1)')
  if (flaw !== 'ok') throw damaged(`its database is torn (${flaw})`)
  // Rows that PostgreSQL wrote were counted as they were read.
  if (content !== 'sqlite') return
  for (const [table, expected] of Object.entries(rows)) {
    if (!/^\w+$/.test(table)) throw damaged(`"${table}" is no table`)
    const [[count] = []] = await query(`select count(*) from "${table}"`)
    if (count !== expected) throw damaged(`its table "${table}" has ${count} rows, and its manifest says ${expected}`)
  }
}
