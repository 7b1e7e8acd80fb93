import { Problem } from '../core/problem'
import { listBackedUpAt } from './last-backups'
import { requireOwnTarget } from './target-owner'
import type { BackupTarget } from './targets/backup-target'

const MAX_NAMED_TENANTS = 10

/**
 * Says that a target cannot be read, has the backups of another installation, or lacks backups that were stored in it;
 * undefined for one in order. It writes nothing.
 */
export async function findTargetProblem(target: BackupTarget): Promise<string | undefined> {
  try {
    const names = new Set(await target.list(''))
    await requireOwnTarget(target)
    const missing = (await listBackedUpAt(target.addressOf(''))).filter((folder) => !names.has(folder))
    if (!missing.length) return
    const more = missing.length > MAX_NAMED_TENANTS ? ' and others' : ''
    const list = `${missing.slice(0, MAX_NAMED_TENANTS).join(', ')}${more}`
    return `${target.addressOf('')} lacks the backups of ${list}, which were stored there. Look who removed them, and run "atoll backup".`
  } catch (error) {
    if (error instanceof Problem) return error.message
    throw error
  }
}
