import { getErrorChain } from '../../core/log'
import { Problem } from '../../core/problem'
import type { BackupTarget } from './backup-target'

const FAILURE_REASONS: Record<string, string> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  AccessDenied: 'the store denies access',
  NoSuchBucket: 'there is no such bucket',
  ConnectionRefused: 'the store does not answer',
  ERR_S3_MISSING_CREDENTIALS: 'set S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY',
}

/** Returns a target whose failures to read, list and remove say where and why. Who writes explains failed attempts itself. */
export function explainFailures(target: BackupTarget): BackupTarget {
  const explain =
    <Result>(run: (path: string) => Promise<Result>) =>
    async (path: string) => {
      try {
        return await run(path)
      } catch (error) {
        throw targetFailed(target.addressOf(path), error)
      }
    }
  return {
    addressOf: target.addressOf,
    write: target.write,
    read: explain(target.read),
    list: explain(target.list),
    removeFile: explain(target.removeFile),
    removeFolder: explain(target.removeFolder),
  }
}

function targetFailed(address: string, error: unknown): Problem {
  const { code, message } = getErrorChain(error).at(-1) as Error & { code?: string }
  const reason = FAILURE_REASONS[`${code}`] ?? message.replace(/\.$/, '')
  return new Problem(502, 'BACKUP_TARGET_FAILED', `${address} cannot be reached: ${reason}.`, { cause: error })
}
