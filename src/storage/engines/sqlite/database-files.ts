import { accessSync, closeSync, constants, openSync, type Stats, statfsSync, statSync } from 'node:fs'
import { devNull } from 'node:os'
import { dirname } from 'node:path'
import { getErrorChain } from '../../../core/log'
import { Busy, DatabaseDamaged, StorageFault, toStorageError } from '../../errors'

/** The part of its disk that a database's log may take, within bounds (bytes). */
const LOG_DISK_SHARE = 1 / 8
const LOG_LIMIT_BYTES = { min: 4 << 20, max: 256 << 20 }

/** The files of an open database: whether they are still those at its path, and how long its log is. */
export class DatabaseFiles {
  #database: Stats
  #log: Stats
  /** The longest that the log should become (bytes). */
  readonly logLimit: number

  /** @param path of a database that was just opened and has a log */
  constructor(readonly path: string) {
    this.#database = statSync(path)
    this.#log = statSync(`${path}-wal`)
    const { bsize, blocks } = statfsSync(dirname(path))
    this.logLimit = Math.min(LOG_LIMIT_BYTES.max, Math.max(LOG_LIMIT_BYTES.min, bsize * blocks * LOG_DISK_SHARE))
  }

  /** Returns the length of the log (bytes). @throws DatabaseDamaged when the files were moved away or replaced */
  requireInPlace(): number {
    const log = statIfExists(`${this.path}-wal`)
    if (isSameFile(this.#database, statIfExists(this.path)) && log && isSameFile(this.#log, log)) return log.size
    throw new DatabaseDamaged(undefined, `${this.path} was moved away or replaced while it was open.`)
  }

  isInPlace() {
    return (
      isSameFile(this.#database, statIfExists(this.path)) && isSameFile(this.#log, statIfExists(`${this.path}-wal`))
    )
  }

  /** Tells whether other files are at the path now. SQLite would remove their log when ours is closed. */
  isReplaced(): boolean {
    const replaced = (ours: Stats, there?: Stats) => !!there && !isSameFile(ours, there)
    return replaced(this.#database, statIfExists(this.path)) || replaced(this.#log, statIfExists(`${this.path}-wal`))
  }
}

/** @throws DatabaseDamaged when a database that should exist is missing or empty */
export function assertFile(path: string) {
  const file = statIfExists(path)
  if (!file) throw new DatabaseDamaged(undefined, `${path} is missing.`)
  if (!file.size) throw new DatabaseDamaged(undefined, `${path} is empty.`)
}

/** Returns the error of an opening: 503 BUSY when descriptors are used up. Call it before any of them is closed. */
export function toOpenError(error: unknown, path: string): Error {
  const isBusy = isOutOfDescriptors() || canBeOpened(error, path)
  const translated = toStorageError(error)
  return translated instanceof StorageFault && isBusy ? new Busy(error) : translated
}

/** Tells whether this process may open no more files, which SQLite does not distinguish from other failures. */
function isOutOfDescriptors(): boolean {
  try {
    closeSync(openSync(devNull, 'r'))
    return false
  } catch {
    return true
  }
}

/**
 * Tells whether a file that SQLite could not open can be opened: then descriptors were used up, and one is free again.
 */
function canBeOpened(error: unknown, path: string): boolean {
  if (!getErrorChain(error).some((cause) => (cause as { code?: string }).code === 'SQLITE_CANTOPEN')) return false
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    accessSync(dirname(path), constants.W_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

const statIfExists = (path: string) => statSync(path, { throwIfNoEntry: false })
const isSameFile = (one: Stats, other?: Stats) => one.ino === other?.ino && one.dev === other.dev
