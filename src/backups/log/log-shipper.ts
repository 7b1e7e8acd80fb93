import { config } from '../../config'
import { ConfigError } from '../../core/config-error'
import { logError } from '../../core/log'
import { hasLog, observeLogs, readLogs } from '../../tenancy/databases'
import { registry, registryLocation } from '../../tenancy/registry'
import { listTenants } from '../../tenancy/tenant-list'
import { getTenantAnyStatus } from '../../tenancy/tenants'
import type { BackupResult } from '../backups'
import { runCommandProcess } from '../command-process'
import { configuredEncryption, createEncryption } from '../encryption'
import { INSTALLATION_FOLDER } from '../folder-name'
import { claimTarget } from '../target-owner'
import { openTarget } from '../targets'
import type { BackupTarget } from '../targets/backup-target'
import { MissingBackups } from './missing-backups'
import { ShippedLog } from './shipped-log'

const READ_INTERVAL_MS = 1_000 // how exactly a moment can be restored
const SHIP_INTERVAL_MS = 2_000
const MAX_PENDING_BYTES = 128 << 20 // of all tenants; beyond that a log is given up, and begins anew with a backup
const FIRST_BACKUP_RETRY_MS = 5_000 // the target may be back a moment after a backup has failed
const MAX_BACKUP_RETRY_MS = 60_000
const WATCH_INTERVAL_MS = 10_000 // between two looks whether the target has what was stored
const MAX_PARALLEL_LOGS = 8
const SHIP_POLL_MS = 20
const REPORT_INTERVAL_MS = 60_000
const FINAL_SHIP_MS = 5_000 // for which a server that is stopped waits for the target

/** The logs of databases by the folders of their backups. */
const logs = new Map<string, ShippedLog>()

/**
 * How the shipping of logs is: since when the writes of each tenant cannot be restored from the target (ms since 1970), the
 * longest first, and why.
 */
export type LogShippingState = { unprotected: { folder: string; since: number }[]; problem?: string }

/** Why the last backup of a folder failed. Without a backup, the log of the folder is of no use. */
const backupProblems = new Map<string, string>()

/** Returns how the shipping of logs is, or undefined when it is off. */
export function getLogShippingState(): LogShippingState | undefined {
  if (config.ATOLL_BACKUP_CONTINUOUS === 'off') return
  const all = [...logs.values()]
  const unprotected = all.flatMap(({ folder, unprotectedSince: since }) =>
    since === undefined ? [] : [{ folder, since }],
  )
  const [backupProblem] = backupProblems.values()
  const problem = all.find((log) => log.problem)?.problem ?? backupProblem
  return { unprotected: unprotected.sort((one, other) => one.since - other.since), problem }
}

/**
 * Stores what is written to the databases of files in the target of the settings, every few seconds, from the next
 * opening of each. Call it before anything is opened. Returns a function that stores the rest, unless the target is slow.
 * @throws ConfigError without a target, or with PostgreSQL, which ships its log by itself
 */
export async function startLogShipping(): Promise<() => Promise<void>> {
  if (config.ATOLL_BACKUP_CONTINUOUS === 'off') return async () => {}
  if (!config.ATOLL_BACKUP_TO)
    throw new ConfigError('ATOLL_BACKUP_CONTINUOUS needs a target. Set ATOLL_BACKUP_TO, too.')
  if (config.ATOLL_WORKERS > 1)
    throw new ConfigError(
      'ATOLL_BACKUP_CONTINUOUS needs a single process. Remove ATOLL_WORKERS, or back up by ATOLL_BACKUP_SCHEDULE.',
    )
  if (registryLocation.cluster)
    throw new ConfigError('ATOLL_BACKUP_CONTINUOUS is for files. PostgreSQL archives its log by its own tools.')
  const { passphrase, recipients } = configuredEncryption()
  const [target, encryption] = [openTarget(config.ATOLL_BACKUP_TO), await createEncryption(passphrase, recipients)]
  const backups = new BackupQueue()
  const logOf = (file: string) => findLog(file, target)
  observeLogs({
    opened: (file, state) => logOf(file)?.open(state),
    closed: (file, state) => logOf(file)?.close(state),
    received: (file, frames) => logOf(file)?.add(frames),
  })
  let claiming: Promise<void> | undefined
  let isClaimed = false
  const claim = async () => {
    if (isClaimed) return
    claiming ??= claimTarget(target).finally(() => {
      claiming = undefined
    })
    await claiming
    isClaimed = true
  }
  const shipOne = async (log: ShippedLog) => {
    try {
      await claim()
      await log.ship(encryption)
      // The target is back, so a backup that failed meanwhile need not wait for its next attempt.
      if (log.problem) for (const folder of backupProblems.keys()) backups.add(folder)
      log.problem = undefined
      if (log.needsBackup && !backups.has(log.folder)) backups.add(log.folder)
    } catch (error) {
      log.problem = toMessage(error)
      reportFailure(error)
    }
  }
  // One connection that hangs must not hold up the logs of others.
  const shipping = new Set<ShippedLog>()
  const ship = async () => {
    const due = [...logs.values()].filter((log) => !shipping.has(log)).slice(0, MAX_PARALLEL_LOGS - shipping.size)
    await Promise.all(
      due.map(async (log) => {
        shipping.add(log)
        await shipOne(log)
        shipping.delete(log)
        // The longest served one is the last of the next turn.
        if (logs.delete(log.folder)) logs.set(log.folder, log)
      }),
    )
  }
  // A log that was begun gets its backup once the log has a name.
  const isAwaited = (folder: string) =>
    backups.has(folder) || backupProblems.has(folder) || logs.get(folder)?.unprotectedSince !== undefined
  const missing = new MissingBackups(target)
  let isWatching = false
  const watch = async () => {
    if (isWatching) return
    isWatching = true
    try {
      const storedLogs = [...logs.values()].filter((log) => log.generationName)
      const { lost, isEmptied } = await missing.find(storedLogs)
      if (isEmptied && isClaimed) lost.add(INSTALLATION_FOLDER)
      if (isEmptied) isClaimed = false
      await claim()
      for (const folder of lost) {
        if (backups.has(folder)) continue
        logError('BACKUPS_MISSING', {
          tenant: folder,
          message: 'Its backups are not in the target any more. A new one is being made.',
        })
        backupProblems.set(folder, `the backups of ${folder} are not in the target any more`)
        // A log gets its backup once its new generation has a name, which the backup notes.
        if (!logs.get(folder)?.restartGeneration()) backups.add(folder)
      }
      for (const folder of await listNeverBackedUp()) if (!isAwaited(folder)) backups.add(folder)
    } catch (error) {
      reportFailure(error)
    } finally {
      isWatching = false
    }
  }
  // A tenant that is only read needs a backup, too, and what tenants share always has a new one.
  const first = setTimeout(async () => {
    if (!isAwaited(INSTALLATION_FOLDER) && !logs.get(INSTALLATION_FOLDER)?.generationName)
      backups.add(INSTALLATION_FOLDER)
    await openUnshipped()
    await watch()
  }, SHIP_INTERVAL_MS).unref()
  const timers = [
    first,
    setInterval(readLogs, READ_INTERVAL_MS).unref(),
    setInterval(ship, SHIP_INTERVAL_MS).unref(),
    setInterval(watch, WATCH_INTERVAL_MS).unref(),
  ]
  return async () => {
    for (const timer of timers) clearInterval(timer)
    backups.stop()
    const shipRest = async () => {
      while (shipping.size) await Bun.sleep(SHIP_POLL_MS)
      while ([...logs.values()].some(({ pendingBytes, problem }) => pendingBytes && !problem)) await ship()
      return true
    }
    const isShipped = await Promise.race([shipRest(), Bun.sleep(FINAL_SHIP_MS)])
    const cause = new Error('The target took too long while the server was stopped.')
    if (!isShipped) logError('LOG_NOT_SHIPPED', { cause })
  }
}

/** Returns the tenants of which no backup is recorded. */
async function listNeverBackedUp(): Promise<string[]> {
  const rows = await registry.db.query(
    'select t.id from tenants t left join tenant_backups b on b.tenant = t.id where b.place is null order by t.id',
  )
  return rows.map(([id]) => String(id))
}

/** Tells whether a folder has something to back up. Its tenant may have been deleted since it was added. */
const isInstalled = async (folder: string) =>
  folder === INSTALLATION_FOLDER || !!(await registry.db.query('select 1 from tenants where id = ?', [folder])).length

/** Opens the databases whose logs were left by a process that was killed, so that they are stored. */
async function openUnshipped() {
  for (const { id } of await listTenants()) if (hasLog(id)) await getTenantAnyStatus(id).catch(() => {}) // a request will say why
}

/** Returns the log of a tenant's file or of the registry; undefined for files that are no database of a tenant. */
function findLog(file: string, target: BackupTarget): ShippedLog | undefined {
  const folder =
    file === registryLocation.file ? INSTALLATION_FOLDER : /^([a-z0-9][a-z0-9-]*)\/data\.db$/.exec(file)?.[1]
  if (!folder) return
  const existing = logs.get(folder)
  if (existing) return existing
  const created = new ShippedLog(folder, target)
  logs.set(folder, created)
  return created
}

const toMessage = (error: unknown) => (error instanceof Error ? error.message : `${error}`)

let reportedAt = Number.NEGATIVE_INFINITY

/** Tells the operator, and gives up the largest logs when too much waits. */
function reportFailure(error: unknown) {
  if (performance.now() > reportedAt + REPORT_INTERVAL_MS) logError('LOG_NOT_SHIPPED', { cause: error })
  reportedAt = performance.now()
  let pending = logs.values().reduce((sum, { pendingBytes }) => sum + pendingBytes, 0)
  for (const log of [...logs.values()].sort((one, other) => other.pendingBytes - one.pendingBytes)) {
    if (pending <= MAX_PENDING_BYTES) return
    pending -= log.pendingBytes
    log.endGeneration()
  }
}

/** Makes backups one after the other, in processes of their own, and tries those again that fail, after growing pauses. */
class BackupQueue {
  #waiting = new Set<string>()
  #retrying = new Set<string>()
  #failures = new Map<string, number>()
  #controller = new AbortController()
  #current?: string

  has(folder: string): boolean {
    return this.#waiting.has(folder) || this.#current === folder || this.#retrying.has(folder)
  }

  add(folder: string) {
    this.#retrying.delete(folder)
    this.#waiting.add(folder)
    void this.#run()
  }

  stop() {
    this.#controller.abort()
  }

  async #run() {
    if (this.#current) return
    for (const folder of this.#waiting) {
      if (this.#controller.signal.aborted) break
      this.#waiting.delete(folder)
      this.#current = folder
      try {
        if (!(await isInstalled(folder))) {
          backupProblems.delete(folder)
          this.#failures.delete(folder)
          continue
        }
        const args = ['backup', folder]
        const generation = logs.get(folder)?.generationName
        const { failed } = await runCommandProcess<BackupResult>(args, { signal: this.#controller.signal })
        if (failed[0]) throw new Error(failed[0].message)
        backupProblems.delete(folder)
        this.#failures.delete(folder)
        logs.get(folder)?.confirmBackup(generation)
      } catch (cause) {
        if (this.#controller.signal.aborted) break
        backupProblems.set(folder, toMessage(cause))
        logError('BACKUP_FAILED', { tenant: folder, cause })
        this.#retrying.add(folder)
        const failures = this.#failures.get(folder) ?? 0
        this.#failures.set(folder, failures + 1)
        const delay = Math.min(MAX_BACKUP_RETRY_MS, FIRST_BACKUP_RETRY_MS * 2 ** failures)
        setTimeout(() => this.#retrying.has(folder) && this.add(folder), delay).unref()
      }
    }
    this.#current = undefined
  }
}
