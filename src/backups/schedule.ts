import { Cron } from 'croner'
import { config } from '../config'
import { ConfigError } from '../core/config-error'
import { log, logError } from '../core/log'
import { isFirstProcess } from '../core/server-processes'
import type { BackgroundWork } from '../jobs/area'
import { tryClaim } from '../tenancy/databases'
import type { BackupResult } from './backups'
import { runCommandProcess } from './command-process'

/** Checks the settings of the schedule. @throws ConfigError for an invalid schedule, or one without a target */
export function checkBackupSchedule() {
  if (!config.ATOLL_BACKUP_SCHEDULE) return
  if (!config.ATOLL_BACKUP_TO) throw new ConfigError('ATOLL_BACKUP_SCHEDULE needs a target. Set ATOLL_BACKUP_TO, too.')
  createTimer(config.ATOLL_BACKUP_SCHEDULE, () => {}).stop()
}

/**
 * Makes backups of all tenants by ATOLL_BACKUP_SCHEDULE, in a process of its own, and removes old ones. Of several
 * servers one does it.
 */
export function startBackupSchedule(): BackgroundWork {
  const schedule = config.ATOLL_BACKUP_SCHEDULE
  if (!schedule || !isFirstProcess()) return {}
  const controller = new AbortController()
  let running: Promise<void> | undefined
  const timer = createTimer(schedule, () => {
    running ??= runScheduledBackup(controller.signal).finally(() => {
      running = undefined
    })
  })
  return {
    stop: () => timer.stop(),
    abort: () => controller.abort(),
    finish: async () => {
      controller.abort()
      await running
    },
  }
}

function createTimer(schedule: string, run: () => void): Cron {
  try {
    return new Cron(schedule, { timezone: 'UTC', unref: true }, run)
  } catch (cause) {
    const message = `ATOLL_BACKUP_SCHEDULE is not a valid schedule: "${schedule}". Use five fields such as 0 3 * * *.`
    throw new ConfigError(message, { cause })
  }
}

async function runScheduledBackup(signal: AbortSignal): Promise<void> {
  try {
    await using claim = config.ATOLL_DATABASE_URL ? await tryClaim('backups') : undefined
    if (config.ATOLL_DATABASE_URL && !claim) return
    const { backups, failed } = await runCommandProcess<BackupResult>(['backup', '--prune'], { signal })
    log.info({ event: 'backed-up', tenants: backups.length, failed: failed.length })
    for (const { tenant, message } of failed) logError('BACKUP_FAILED', { tenant, message })
  } catch (cause) {
    if (!signal.aborted) logError('BACKUP_FAILED', { cause })
  }
}
