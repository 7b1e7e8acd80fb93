import { close, fdatasync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { StorageFault } from '../../errors'

const synchronize = promisify(fdatasync)

/**
 * A database's log as the disk has it. SQLite would stop the whole process at every commit until the disk has it; this
 * waits in another thread, while requests are served and the next writes are made.
 */
export class Log {
  #file: number
  /** Until the disk has what it was asked for last. */
  #latest: Promise<void>
  /** The same for the round that has not begun yet. */
  #next?: Promise<void>

  /** @param database the path of a database that is open: only for so long its log stays the same file */
  constructor(database: string) {
    this.#file = openSync(`${database}-wal`, 'r+')
    this.#latest = keepNames(dirname(database))
    this.#latest.catch(() => {})
  }

  /**
   * Until the disk has all that is committed now; who asks while it is busy shares its next round. Once it has failed
   * it rejects for good, for what was lost then makes all that follows in the log unreadable.
   */
  kept(): Promise<void> {
    this.#next ??= this.#latest
      .then(() => {
        this.#next = undefined
        return synchronize(this.#file)
      })
      .catch((error) => {
        throw error instanceof StorageFault ? error : new StorageFault(error)
      })
    this.#latest = this.#next
    return this.#next
  }

  /** To be called when nobody waits for it any more. */
  close() {
    close(this.#file, () => {})
  }
}

/** Until the disk knows which files are in a folder. Windows neither needs nor allows it. */
async function keepNames(path: string) {
  if (process.platform === 'win32') return
  const folder = await open(path)
  await folder.sync().finally(() => folder.close())
}
