import type { BackupResult } from '../../backups/backups'
import { CommandFailed } from '../../backups/command-process'
import type { MadeBackup } from '../../backups/tenant-backup'
import { requireConfiguredTarget } from '../../backups/tenant-backups'
import { getTenantInfo } from '../../tenancy/tenant-list'
import { toCommandTask } from './command-task'
import type { TaskKind } from './task-kind'

/** Makes a backup of a tenant in the target of the settings. */
export const backup: TaskKind<Record<never, never>, MadeBackup> = {
  stoppedMessage: 'The server was stopped during the backup, so there is none. Start it again.',
  // Another backup of the same moment would be worth nothing.
  uses: (tenant) => ({ reads: [tenant], changes: [`backups of ${tenant}`] }),
  async prepare(tenant) {
    await getTenantInfo(tenant)
    requireConfiguredTarget()
    return toCommandTask(['backup', tenant], ({ backups: [made], failed: [failure] }: BackupResult) => {
      if (made) return made
      throw new CommandFailed(failure)
    })
  },
}
