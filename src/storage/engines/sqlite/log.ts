import { close, fdatasync, fsync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { StorageFault } from '../../errors'

// Apple's file systems may keep a file's data but not that it has grown.
const synchronize = promisify(process.platform === 'darwin' ? fsync : fdatasync)

/**
 * A database's log as the disk has it. SQLite would stop the whole process at every commit until the disk has it; this
 * waits in another thread, while requests are served and the next writes are made.
 */
export class Log {
  #file: number
  #failed: StorageFault | undefined
  /** Until the disk has what it was asked for last. */
  #latest: Promise<void>
  /** The same for the round that has not begun yet. */
  #next: Promise<void> | undefined

  /**
   * @param database the path of a database that is open: only for so long its log stays the same file
   * @param folders those that the disk must know by name: the file's own, and the one which that is in
   */
  constructor(database: string, folders: string[]) {
    this.#file = openSync(`${database}-wal`, 'r+')
    this.#latest = this.#failing(() => Promise.all(folders.map(keepNames)))
    this.#latest.catch(() => {})
  }

  /** @throws once the disk has failed: what was lost then makes all that follows in the log unreadable. */
  refuseBroken() {
    if (this.#failed) throw this.#failed
  }

  /** Until the disk has all that is committed now; who asks while it is busy shares its next round. */
  kept(): Promise<void> {
    this.#next ??= this.#latest.then(() => {
      this.#next = undefined
      return this.#failing(() => synchronize(this.#file))
    })
    this.#latest = this.#next
    return this.#next
  }

  /** To be called when nobody waits for it any more. */
  close() {
    close(this.#file, () => {})
  }

  async #failing(work: () => Promise<unknown>) {
    try {
      await work()
    } catch (error) {
      this.#failed = new StorageFault(error)
      throw this.#failed
    }
  }
}

/** Until the disk knows which files are in a folder. Windows neither needs nor allows it. */
export async function keepNames(path: string) {
  if (process.platform === 'win32') return
  const folder = await open(path)
  await folder.sync().finally(() => folder.close())
}
