import { config } from '../../config'
import { ConfigError } from '../../core/config-error'
import { logError } from '../../core/log'
import { repeatWork } from '../../core/repeated-work'
import { hasLog, observeLogs, readLogs } from '../../tenancy/databases'
import { registry, registryLocation } from '../../tenancy/registry'
import { listTenants } from '../../tenancy/tenant-list'
import { getTenantAnyStatus } from '../../tenancy/tenants'
import { type BackupEncryption, configuredEncryption, createEncryption } from '../encryption'
import { INSTALLATION_FOLDER } from '../folder-name'
import { claimTarget } from '../target-owner'
import { openTarget } from '../targets'
import type { BackupTarget } from '../targets/backup-target'
import { BackupQueue, toMessage } from './backup-queue'
import { MissingBackups } from './missing-backups'
import { ShippedLog } from './shipped-log'

const READ_INTERVAL_MS = 1_000 // how exactly a moment can be restored
const SHIP_INTERVAL_MS = 2_000
const MAX_PENDING_BYTES = 128 << 20 // of all tenants; beyond that a log is given up, and begins anew with a backup
const WATCH_INTERVAL_MS = 10_000 // between two looks whether the target has what was stored
const MAX_PARALLEL_LOGS = 8
const SHIP_POLL_MS = 20
const REPORT_INTERVAL_MS = 60_000
const FINAL_SHIP_MS = 5_000 // for which a server that is stopped waits for the target

/**
 * How the shipping of logs is: since when the writes of each tenant cannot be restored from the target (ms since 1970), the
 * longest first, and why.
 */
export type LogShippingState = { unprotected: { folder: string; since: number }[]; problem?: string }

/** Stores what is written to the databases of files in a target, every few seconds, from the next opening of each. */
export class LogShipper {
  /** The logs of databases by the folders of their backups. */
  #logs = new Map<string, ShippedLog>()
  #backups = new BackupQueue((folder) => this.#logs.get(folder))
  #missing = new MissingBackups()
  #shipping = new Set<ShippedLog>()
  #isClaimed = false
  #reportedAt = Number.NEGATIVE_INFINITY
  #hasBegun = false
  #watching?: ReturnType<typeof repeatWork>
  #timers: Timer[] = []

  constructor(
    private target: BackupTarget,
    private encryption?: BackupEncryption,
  ) {}

  /** Takes what is added to the databases that are opened from now on, for `sync`. */
  observe() {
    observeLogs({
      opened: (file, state) => this.#findLog(file)?.open(state),
      closed: (file, state) => this.#findLog(file)?.close(state),
      received: (file, frames) => this.#findLog(file)?.add(frames),
    })
    return this
  }

  start() {
    this.observe()
    this.#timers = [
      setInterval(readLogs, READ_INTERVAL_MS).unref(),
      setInterval(() => this.#ship(), SHIP_INTERVAL_MS).unref(),
    ]
    this.#watching = repeatWork(() => this.#watch(), WATCH_INTERVAL_MS, SHIP_INTERVAL_MS)
  }

  /** Stores the rest, unless the target is slow. */
  async stop() {
    for (const timer of this.#timers) clearInterval(timer)
    this.#watching?.stop()
    this.#backups.stop()
    observeLogs(undefined)
    const isShipped = await Promise.race([this.#shipRest(), Bun.sleep(FINAL_SHIP_MS)])
    const cause = new Error('The target took too long while the server was stopped.')
    if (!isShipped) logError('LOG_NOT_SHIPPED', { cause })
  }

  /** Stores what was written until now, and makes the backups that wait. Returns the paths of the stored segments. */
  async sync(): Promise<string[]> {
    readLogs()
    const stored = await this.#ship()
    await this.#backups.finish()
    return stored
  }

  get state(): LogShippingState {
    const all = [...this.#logs.values()]
    const unprotected = all.flatMap(({ folder, unprotectedSince: since }) =>
      since === undefined ? [] : [{ folder, since }],
    )
    const [backupProblem] = this.#backups.problems.values()
    const problem = all.find((log) => log.problem)?.problem ?? backupProblem
    return { unprotected: unprotected.sort((one, other) => one.since - other.since), problem }
  }

  /** Returns the log of a tenant's file or of the registry; undefined for files that are no database of a tenant. */
  #findLog(file: string): ShippedLog | undefined {
    const folder =
      file === registryLocation.file ? INSTALLATION_FOLDER : /^([a-z0-9][a-z0-9-]*)\/data\.db$/.exec(file)?.[1]
    if (!folder) return
    const log = this.#logs.get(folder) ?? new ShippedLog(folder, this.target)
    this.#logs.set(folder, log)
    return log
  }

  // A tenant that is only read needs a backup, too, and what tenants share always has a new one.
  async #begin() {
    if (!this.#isAwaited(INSTALLATION_FOLDER) && !this.#logs.get(INSTALLATION_FOLDER)?.generationName)
      this.#backups.add(INSTALLATION_FOLDER)
    await openUnshipped()
    this.#hasBegun = true
  }

  async #claim() {
    if (!this.#isClaimed) await claimTarget(this.target)
    this.#isClaimed = true
  }

  async #ship(): Promise<string[]> {
    const idle = [...this.#logs.values()].filter((log) => !this.#shipping.has(log))
    // One connection that hangs must not hold up the logs of others.
    const due = idle.slice(0, MAX_PARALLEL_LOGS - this.#shipping.size)
    const stored = due.map(async (log) => {
      this.#shipping.add(log)
      const segment = await this.#shipOne(log)
      this.#shipping.delete(log)
      // The longest served one is the last of the next turn.
      if (this.#logs.delete(log.folder)) this.#logs.set(log.folder, log)
      return segment ?? []
    })
    return (await Promise.all(stored)).flat()
  }

  async #shipOne(log: ShippedLog): Promise<string | undefined> {
    try {
      await this.#claim()
      const segment = await log.ship(this.encryption)
      // The target is back, so a backup that failed meanwhile need not wait for its next attempt.
      if (log.problem) this.#backups.retryFailed()
      log.problem = undefined
      if (log.needsBackup && !this.#backups.has(log.folder)) this.#backups.add(log.folder)
      return segment
    } catch (error) {
      log.problem = toMessage(error)
      this.#reportFailure(error)
    }
  }

  async #shipRest(): Promise<true> {
    while (this.#shipping.size) await Bun.sleep(SHIP_POLL_MS)
    while ([...this.#logs.values()].some(({ pendingBytes, problem }) => pendingBytes && !problem)) await this.#ship()
    return true
  }

  /** Tells whether a folder gets a backup anyway. A log that was begun gets it once the log has a name. */
  #isAwaited(folder: string): boolean {
    const hasUnprotected = this.#logs.get(folder)?.unprotectedSince !== undefined
    return this.#backups.has(folder) || this.#backups.problems.has(folder) || hasUnprotected
  }

  /** Backs up what has no backup in the target, or has none any more. */
  async #watch() {
    try {
      if (!this.#hasBegun) await this.#begin()
      const storedLogs = [...this.#logs.values()].filter((log) => log.generationName)
      const { lost, isEmptied } = await this.#missing.find(this.target, storedLogs)
      if (isEmptied && this.#isClaimed) lost.add(INSTALLATION_FOLDER)
      if (isEmptied) this.#isClaimed = false
      await this.#claim()
      for (const folder of lost) if (!this.#backups.has(folder)) this.#replaceLost(folder)
      for (const folder of await listNeverBackedUp()) if (!this.#isAwaited(folder)) this.#backups.add(folder)
    } catch (error) {
      this.#reportFailure(error)
    }
  }

  #replaceLost(folder: string) {
    logError('BACKUPS_MISSING', {
      tenant: folder,
      message: 'Its backups are not in the target any more. A new one is being made.',
    })
    this.#backups.problems.set(folder, `the backups of ${folder} are not in the target any more`)
    // A log gets its backup once its new generation has a name, which the backup notes.
    if (!this.#logs.get(folder)?.restartGeneration()) this.#backups.add(folder)
  }

  /** Tells the operator, and gives up the largest logs when too much waits. */
  #reportFailure(error: unknown) {
    if (performance.now() > this.#reportedAt + REPORT_INTERVAL_MS) logError('LOG_NOT_SHIPPED', { cause: error })
    this.#reportedAt = performance.now()
    let pending = this.#logs.values().reduce((sum, { pendingBytes }) => sum + pendingBytes, 0)
    for (const log of [...this.#logs.values()].sort((one, other) => other.pendingBytes - one.pendingBytes)) {
      if (pending <= MAX_PENDING_BYTES) return
      pending -= log.pendingBytes
      log.endGeneration()
    }
  }
}

let shipper: LogShipper | undefined

/** Returns how the shipping of logs is, or undefined when it is off. */
export const getLogShippingState = (): LogShippingState | undefined => shipper?.state

/**
 * Ships logs to the target of the settings. Returns a function that stops it.
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
  shipper = new LogShipper(openTarget(config.ATOLL_BACKUP_TO), await createEncryption(passphrase, recipients))
  shipper.start()
  return () => shipper!.stop()
}

/** Returns the tenants of which no backup is recorded. */
async function listNeverBackedUp(): Promise<string[]> {
  const rows = await registry.db.query(
    'select t.id from tenants t left join tenant_backups b on b.tenant = t.id where b.place is null order by t.id',
  )
  return rows.map(([id]) => String(id))
}

/** Opens the databases whose logs were left by a process that was killed, so that they are stored. */
async function openUnshipped() {
  for (const { id } of await listTenants()) if (hasLog(id)) await getTenantAnyStatus(id).catch(() => {}) // a request will say why
}
