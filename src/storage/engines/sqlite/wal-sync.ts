import { closeSync, fdatasync, fsync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { Problem } from '../../../core/problem'
import { Busy, DiskFailure, toStorageError } from '../../errors'

// Apple's file systems may keep a file's data but not that it has grown.
const syncFile = promisify(process.platform === 'darwin' ? fsync : fdatasync)

/**
 * A database's log as the disk has it. SQLite would stop the whole process at every commit until the disk has it; this
 * waits in another thread, while requests are served and the next writes are made.
 */
export class WalSync {
  #file: number
  #failure: Error | undefined
  /** Those that the disk does not know by name yet. */
  #unsyncedFolders: string[]
  /** Until the disk has what it was asked for last. */
  #latest: Promise<void> = Promise.resolve()
  /** The same for the round that has not begun yet. */
  #next: Promise<void> | undefined

  /**
   * @param database the path of a database that is open: only for so long its log stays the same file
   * @param folders those that the disk must know by name: the file's own, and the one which that is in
   */
  constructor(database: string, folders: string[]) {
    this.#file = openSync(`${database}-wal`, 'r+')
    this.#unsyncedFolders = folders
  }

  get hasFailed() {
    return !!this.#failure
  }

  /** @throws once the disk has failed: what was lost then makes all that follows in the log unreadable. */
  assertHealthy() {
    if (this.#failure) throw this.#failure
  }

  /** Until the disk has all that is committed now; who asks while it is busy shares its next round. */
  waitUntilDurable(): Promise<void> {
    this.#next ??= this.#latest
      .catch(() => {}) // of an earlier round, whose writers were told
      .then(() => {
        this.#next = undefined
        return this.#recordFailure(() => this.#sync())
      })
    this.#latest = this.#next
    return this.#next
  }

  async close() {
    await this.#latest.catch(() => {})
    closeSync(this.#file)
  }

  /** Names come with the first write: of a database that is only read, the disk need not know anything. */
  async #sync() {
    await Promise.all(this.#unsyncedFolders.map(fsyncDirectory))
    this.#unsyncedFolders = []
    await syncFile(this.#file)
  }

  async #recordFailure(work: () => Promise<unknown>) {
    this.assertHealthy()
    try {
      await work()
    } catch (error) {
      const failure = toDiskError(error)
      // Without a free descriptor nothing was lost: the next round tries again.
      if (!(failure instanceof Busy)) this.#failure = failure
      throw failure
    }
  }
}

/** Whatever is wrong with a file that was to be kept, the disk has failed; unless it is full, or files are used up. */
function toDiskError(error: unknown): Error {
  const translated = toStorageError(error)
  return translated instanceof Problem ? translated : new DiskFailure(error)
}

/** Until the disk knows which files are in a folder. Windows neither needs nor allows it. */
export async function fsyncDirectory(path: string) {
  if (process.platform === 'win32') return
  const folder = await open(path)
  await folder.sync().finally(() => folder.close())
}
