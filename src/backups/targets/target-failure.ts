import { getErrorChain } from '../../core/log'
import { Problem } from '../../core/problem'
import type { BackupTarget } from './backup-target'

const FAILURE_REASONS: Record<string, string> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOENT: 'there is no such folder',
  ENOTDIR: 'a part of its path is not a folder',
  AccessDenied: 'the store denies access',
  NoSuchBucket: 'there is no such bucket',
  ENAMETOOLONG: 'its path is too long',
}

/** Returns the error of an address in a target of backups that cannot be read or written. */
export function targetFailedProblem(address: string, use: 'read' | 'written', cause: Error & { code?: string }) {
  const reason = FAILURE_REASONS[`${cause.code}`] ?? cause.message.replace(/\.$/, '')
  return new Problem(502, 'BACKUP_TARGET_FAILED', `${address} cannot be ${use}: ${reason}.`, { cause })
}

/** Returns a target whose failures to read, list and remove say where and why. Who writes explains failed attempts itself. */
export function explainFailures(target: BackupTarget): BackupTarget {
  const explain =
    <Result>(run: (path: string) => Promise<Result>) =>
    async (path: string) => {
      try {
        return await run(path)
      } catch (error) {
        if (error instanceof Problem) throw error
        throw targetFailedProblem(target.addressOf(path), 'read', getErrorChain(error).at(-1) as Error)
      }
    }
  const probe = explain(target.probe)
  return {
    addressOf: target.addressOf,
    write: target.write,
    create: target.create,
    read: explain(target.read),
    list: explain((path) => target.list(path)),
    listSizes: explain((path) => target.listSizes(path)),
    probe: () => probe(''),
    removeFile: explain(target.removeFile),
    removeFolder: explain(target.removeFolder),
  }
}
