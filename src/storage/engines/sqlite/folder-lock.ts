import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../../../core/config-error'
import { Busy, toStorageError } from '../../errors'
import type { OpenFile, SqliteConnection } from './drivers'

/**
 * Takes a lock that the system releases with the process, so that no stale lock remains after a crash. Returns undefined
 * while another process, or this one, has it. Close the returned connection to release it.
 */
export function tryLock(connect: OpenFile, path: string): SqliteConnection | undefined {
  const lock = connect(path)
  try {
    lock.exec('pragma busy_timeout = 0; begin exclusive')
    return lock
  } catch (cause) {
    lock.close()
    if (!(toStorageError(cause) instanceof Busy)) throw cause
  }
}

/**
 * Makes this process the only server of a folder. Commands beside a running server do not take this lock.
 * @throws ConfigError when another process serves the folder
 */
export function lockFolder(connect: OpenFile, folder: string): SqliteConnection {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const lock = tryLock(connect, join(folder, 'lock.db'))
  if (lock) return lock
  throw new ConfigError(`Another process serves the folder "${folder}". Stop it, or choose another ATOLL_TENANTS.`)
}
