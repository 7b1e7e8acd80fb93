import { getErrorChain } from '../core/log'
import { Problem } from '../core/problem'
import type { BackupTarget } from './targets/backup-target'

/** Returns the error of an address in a target of backups that cannot be read or written. */
export function targetFailedProblem(address: string, use: 'read' | 'written', cause: Error & { code?: string }) {
  const reason = FAILURE_REASONS[`${cause.code}`] ?? cause.message.replace(/\.$/, '')
  return new Problem(502, 'BACKUP_TARGET_FAILED', `${address} cannot be ${use}: ${reason}.`, { cause })
}

const FAILURE_REASONS: Record<string, string> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOENT: 'there is no such folder',
  ENOTDIR: 'a part of its path is not a folder',
  ERR_S3_MISSING_CREDENTIALS: 'set S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY',
}

/** Checks that the backups in a target can be listed. @throws 502 BACKUP_TARGET_FAILED */
export async function assertReadable(target: BackupTarget): Promise<void> {
  try {
    await target.probe()
  } catch (error) {
    throw targetFailedProblem(target.addressOf(''), 'read', getErrorChain(error).at(-1) as Error)
  }
}
