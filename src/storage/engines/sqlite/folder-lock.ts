import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../../../core/config-error'
import { Busy, toStorageError } from '../../errors'
import type { OpenFile, SqliteConnection } from './drivers'

/**
 * Makes this process the only server of a folder, by a lock that the system releases with the process: no stale lock
 * remains after a crash. Commands beside a running server do not take it. Close the returned connection to release it.
 * @throws ConfigError when another process serves the folder
 */
export function lockFolder(connect: OpenFile, folder: string): SqliteConnection {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const lock = connect(join(folder, 'lock.db'))
  try {
    lock.exec('pragma busy_timeout = 0; begin exclusive')
    return lock
  } catch (cause) {
    lock.close()
    if (!(toStorageError(cause) instanceof Busy)) throw cause
    throw new ConfigError(`Another process serves the folder "${folder}". Stop it, or choose another ATOLL_TENANTS.`)
  }
}
