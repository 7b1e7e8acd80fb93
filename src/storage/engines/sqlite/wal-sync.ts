import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs'
import { fsyncDirectory, syncFile } from '../../../core/fsync'
import { Problem } from '../../../core/problem'
import { Busy, DiskFailure, toStorageError } from '../../errors'

/** The most that a log is lengthened by at once (bytes). */
const MAX_SPARE_BYTES = 256 << 10
let spareBytes: Buffer | undefined

/**
 * Makes a database's log durable. SQLite would block the whole process at every commit until the disk has it; this
 * waits in another thread, while requests are served and the next writes run.
 */
export class WalSync {
  #file: number
  /** The length of the log at the last sync (bytes). */
  #length: number
  #failure: Error | undefined
  /** Folders whose entries are not on the disk yet. */
  #unsyncedFolders: string[]
  /** Resolves when the latest requested sync is done. */
  #latest: Promise<void> = Promise.resolve()
  /** Resolves when the sync that has not started yet is done. */
  #next: Promise<void> | undefined

  /**
   * @param database the path of an open database, because its log stays the same file only while it is open
   * @param folders the file's folder and its parent, whose entries must be on the disk
   */
  constructor(database: string, folders: string[]) {
    this.#file = openSync(`${database}-wal`, constants.O_RDWR | constants.O_APPEND)
    this.#length = fstatSync(this.#file).size
    this.#unsyncedFolders = folders
  }

  get hasFailed() {
    return !!this.#failure
  }

  /** @throws DiskFailure once a sync has failed: a lost page makes the rest of the log unreadable */
  assertHealthy() {
    if (this.#failure) throw this.#failure
  }

  /** Resolves when everything committed so far is on the disk. Calls during a sync share the next one. */
  waitUntilDurable(): Promise<void> {
    this.#next ??= this.#latest
      .catch(() => {}) // an earlier sync, whose writers got its error
      .then(() => {
        this.#next = undefined
        return this.#recordFailure(() => this.#sync())
      })
    this.#latest = this.#next
    return this.#next
  }

  async close() {
    await this.#latest.catch(() => {}) // its writers got the error
    closeSync(this.#file)
  }

  /** Folders are synced with the first write: a database that is only read needs nothing on the disk. */
  async #sync() {
    await Promise.all(this.#unsyncedFolders.map(fsyncDirectory))
    this.#unsyncedFolders = []
    this.#lengthenLog()
    await syncFile(this.#file)
  }

  /**
   * Lengthens a log that grows by small writes: while it keeps its length, a sync takes half as long, because the file
   * system has nothing to record about it. The zeros are appended, so they never replace a frame, and are none
   * themselves.
   */
  #lengthenLog() {
    const { size } = fstatSync(this.#file)
    const growth = size - this.#length
    this.#length = size
    if (growth <= 0 || growth > MAX_SPARE_BYTES) return
    try {
      spareBytes ??= Buffer.alloc(MAX_SPARE_BYTES)
      this.#length += writeSync(this.#file, spareBytes, 0, Math.min(size, MAX_SPARE_BYTES))
    } catch {
      // A full disk is the concern of whoever writes more than zeros.
    }
  }

  async #recordFailure(work: () => Promise<unknown>) {
    this.assertHealthy()
    try {
      await work()
    } catch (error) {
      const failure = toDiskError(error)
      // Without a free descriptor nothing was lost: the next sync tries again.
      if (!(failure instanceof Busy)) this.#failure = failure
      throw failure
    }
  }
}

/** Returns the error of a failed sync: a disk failure, unless the disk is full or descriptors are used up. */
function toDiskError(error: unknown): Error {
  const translated = toStorageError(error)
  return translated instanceof Problem ? translated : new DiskFailure(error)
}
