import { getErrorChain } from '../core/log'
import { Problem } from '../core/problem'
import { listBackedUpAt } from './last-backups'
import { requireOwnTarget } from './target-owner'
import type { BackupTarget } from './targets/backup-target'

const MAX_NAMED_TENANTS = 10
const MAX_LISTED_FOLDERS = 100 // a log makes the folder of a tenant again, so that its backups are looked for

/**
 * Says that a target cannot be read, has the backups of another installation, or lacks backups that were stored in it;
 * undefined for one in order. It writes nothing.
 */
export async function findTargetProblem(target: BackupTarget): Promise<string | undefined> {
  try {
    const backups = [...(await listBackedUpAt(target.addressOf('')))]
    await target.probe().catch((error) => {
      // The first backup creates the folder.
      if (backups.length || (getErrorChain(error).at(-1) as { code?: string }).code !== 'ENOENT') throw error
    })
    await requireOwnTarget(target)
    const names = new Set(await target.list(''))
    const missing: string[] = []
    for (const [place, [folder, name]] of backups.entries())
      if (!names.has(folder) || (place < MAX_LISTED_FOLDERS && !(await target.list(folder)).includes(name)))
        missing.push(folder)
    if (!missing.length) return
    const more = missing.length > MAX_NAMED_TENANTS ? ' and others' : ''
    const list = `${missing.slice(0, MAX_NAMED_TENANTS).join(', ')}${more}`
    return `${target.addressOf('')} lacks the backups of ${list}, which were stored there. Find out who removed them, and run "atoll backup".`
  } catch (error) {
    if (error instanceof Problem) return error.message
    throw error
  }
}
