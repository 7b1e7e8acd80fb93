import { logError } from '../../core/log'
import { registry } from '../../tenancy/registry'
import type { BackupResult } from '../backups'
import { runCommandProcess } from '../command-process'
import { INSTALLATION_FOLDER } from '../folder-name'
import type { ShippedLog } from './shipped-log'

const FIRST_BACKUP_RETRY_MS = 5_000 // the target may be back a moment after a backup has failed
const MAX_BACKUP_RETRY_MS = 60_000

/** Makes backups one after the other, in processes of their own, and tries those again that fail, after growing pauses. */
export class BackupQueue {
  #waiting = new Set<string>()
  #retrying = new Set<string>()
  #failures = new Map<string, number>()
  #controller = new AbortController()
  #current?: string
  #running?: Promise<void>
  /** Why the last backup of a folder failed. Without a backup, the log of the folder is of no use. */
  readonly problems = new Map<string, string>()

  constructor(private findLog: (folder: string) => ShippedLog | undefined) {}

  has(folder: string): boolean {
    return this.#waiting.has(folder) || this.#current === folder || this.#retrying.has(folder)
  }

  add(folder: string) {
    this.#retrying.delete(folder)
    this.#waiting.add(folder)
    this.#running ??= this.#run()
  }

  /** Adds those again whose last backup failed. */
  retryFailed() {
    for (const folder of this.problems.keys()) this.add(folder)
  }

  /** Resolves when no backup waits for another one. */
  finish = async () => this.#running

  stop() {
    this.#controller.abort()
  }

  async #run() {
    for (const folder of this.#waiting) {
      this.#waiting.delete(folder)
      this.#current = folder
      try {
        if (await isInstalled(folder)) await this.#backUp(folder)
        this.problems.delete(folder)
        this.#failures.delete(folder)
      } catch (cause) {
        if (this.#controller.signal.aborted) return
        this.problems.set(folder, toMessage(cause))
        logError('BACKUP_FAILED', { tenant: folder, cause })
        this.#retryLater(folder)
      }
    }
    this.#current = this.#running = undefined
  }

  async #backUp(folder: string) {
    const { signal } = this.#controller
    signal.throwIfAborted()
    const log = this.findLog(folder)
    const generation = log?.generationName
    const { failed } = await runCommandProcess<BackupResult>(['backup', folder], { signal })
    if (failed[0]) throw new Error(failed[0].message)
    log?.confirmBackup(generation)
  }

  #retryLater(folder: string) {
    this.#retrying.add(folder)
    const failures = this.#failures.get(folder) ?? 0
    this.#failures.set(folder, failures + 1)
    const delay = Math.min(MAX_BACKUP_RETRY_MS, FIRST_BACKUP_RETRY_MS * 2 ** failures)
    setTimeout(() => this.#retrying.has(folder) && this.add(folder), delay).unref()
  }
}

/** Tells whether a folder has something to back up. Its tenant may have been deleted since it was added. */
const isInstalled = async (folder: string) =>
  folder === INSTALLATION_FOLDER || !!(await registry.db.query('select 1 from tenants where id = ?', [folder])).length

export const toMessage = (error: unknown) => (error instanceof Error ? error.message : `${error}`)
