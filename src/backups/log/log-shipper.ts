import { config } from '../../config'
import { ConfigError } from '../../core/config-error'
import { logError } from '../../core/log'
import { observeLogs, readLogs } from '../../tenancy/databases'
import { registry, registryLocation } from '../../tenancy/registry'
import type { BackupResult } from '../backups'
import { runCommandProcess } from '../command-process'
import { configuredEncryption, createEncryption } from '../encryption'
import { INSTALLATION_FOLDER } from '../folder-name'
import { openTarget } from '../targets'
import { ShippedLog } from './shipped-log'

const READ_INTERVAL_MS = 1_000 // how exactly a moment can be restored
const SHIP_INTERVAL_MS = 2_000
const MAX_PENDING_BYTES = 128 << 20 // of all tenants; beyond that a log is given up, and begins anew with a backup
const BACKUP_RETRY_MS = 60_000
const REPORT_INTERVAL_MS = 60_000
const FINAL_SHIP_MS = 5_000 // for which a server that is stopped waits for the target

/** How the shipping of logs is: since when something waits (ms since 1970), and why it could not be stored. */
export type LogShippingState = { pendingSince?: number; problem?: string }

const shippingState: LogShippingState = {}
/** Why the last backup of a folder failed. Without a backup, the log of the folder is of no use. */
const backupProblems = new Map<string, string>()

/** Returns how the shipping of logs is, or undefined when it is off. */
export function getLogShippingState(): LogShippingState | undefined {
  if (config.ATOLL_BACKUP_CONTINUOUS === 'off') return
  const [backupProblem] = backupProblems.values()
  return { ...shippingState, problem: shippingState.problem ?? backupProblem }
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
  const logs = new Map<string, ShippedLog>()
  const backups = new BackupQueue()
  observeLogs({
    opened: (file, content) => logOf(logs, file)?.open(content),
    closed: (file, content) => logOf(logs, file)?.close(content),
    received(file, frames) {
      const log = logOf(logs, file)
      if (log?.add(frames)) backups.add(log.folder)
    },
  })
  const shipAll = async () => {
    for (const log of logs.values()) await log.ship(target, encryption)
    // The target is back, so backups that failed meanwhile need not wait for their next attempt.
    if (shippingState.problem) for (const folder of backupProblems.keys()) backups.add(folder)
    shippingState.problem = undefined
  }
  let shipping: Promise<void> | undefined
  const ship = () => {
    shipping ??= shipAll()
      .catch((error) => reportFailure(error, logs))
      .finally(() => {
        shipping = undefined
        const waiting = [...logs.values()].flatMap(({ pendingSince }) => pendingSince ?? [])
        shippingState.pendingSince = waiting.length ? Math.min(...waiting) : undefined
      })
    return shipping
  }
  // A tenant that is only read needs a backup, too, and what tenants share always has a new one.
  const first = setTimeout(async () => {
    for (const folder of [INSTALLATION_FOLDER, ...(await listNeverBackedUp())])
      if (!backups.has(folder)) backups.add(folder)
  }, SHIP_INTERVAL_MS).unref()
  const timers = [first, setInterval(readLogs, READ_INTERVAL_MS).unref(), setInterval(ship, SHIP_INTERVAL_MS).unref()]
  return async () => {
    for (const timer of timers) clearInterval(timer)
    backups.stop()
    const shipRest = async () => {
      await shipping
      await ship()
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

/** Returns the log of a tenant's file or of the registry; undefined for files that are no database of a tenant. */
function logOf(logs: Map<string, ShippedLog>, file: string): ShippedLog | undefined {
  const folder =
    file === registryLocation.file ? INSTALLATION_FOLDER : /^([a-z0-9][a-z0-9-]*)\/data\.db$/.exec(file)?.[1]
  if (!folder) return
  const existing = logs.get(folder)
  if (existing) return existing
  const created = new ShippedLog(folder)
  logs.set(folder, created)
  return created
}

const toMessage = (error: unknown) => (error instanceof Error ? error.message : `${error}`)

let reportedAt = Number.NEGATIVE_INFINITY

/** Tells the operator, and gives up the largest logs when too much waits. */
function reportFailure(error: unknown, logs: Map<string, ShippedLog>) {
  shippingState.problem = toMessage(error)
  if (performance.now() > reportedAt + REPORT_INTERVAL_MS) logError('LOG_NOT_SHIPPED', { cause: error })
  reportedAt = performance.now()
  let pending = logs.values().reduce((sum, { pendingBytes }) => sum + pendingBytes, 0)
  for (const log of [...logs.values()].sort((one, other) => other.pendingBytes - one.pendingBytes)) {
    if (pending <= MAX_PENDING_BYTES) return
    pending -= log.pendingBytes
    log.endGeneration()
  }
}

/** Makes backups one after the other, in processes of their own, and tries those again that fail. */
class BackupQueue {
  #waiting = new Set<string>()
  #controller = new AbortController()
  #current?: string

  has(folder: string): boolean {
    return this.#waiting.has(folder) || this.#current === folder
  }

  add(folder: string) {
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
          continue
        }
        const args = ['backup', folder]
        const { failed } = await runCommandProcess<BackupResult>(args, { signal: this.#controller.signal })
        if (failed[0]) throw new Error(failed[0].message)
        backupProblems.delete(folder)
      } catch (cause) {
        if (this.#controller.signal.aborted) break
        backupProblems.set(folder, toMessage(cause))
        logError('BACKUP_FAILED', { tenant: folder, cause })
        setTimeout(() => this.add(folder), BACKUP_RETRY_MS).unref()
      }
    }
    this.#current = undefined
  }
}
