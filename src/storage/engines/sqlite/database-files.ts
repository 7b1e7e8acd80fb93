import { accessSync, closeSync, constants, openSync, type Stats, statfsSync, statSync } from 'node:fs'
import { devNull } from 'node:os'
import { dirname } from 'node:path'
import { getErrorChain } from '../../../core/log'
import { DatabaseDamaged } from '../../errors'

/** A database's log may take this part of its disk, within bounds (bytes). */
const LOG_DISK_SHARE = 1 / 8
const LOG_LIMIT_BYTES = { min: 4 << 20, max: 256 << 20 }

/** The files of a database that is open: whether they are still those at its path, and how long its log is. */
export class DatabaseFiles {
  #database: Stats
  #log: Stats
  /** How long the log should become at most (bytes). */
  readonly logLimit: number

  /** @param path of a database that was just opened, with its log */
  constructor(readonly path: string) {
    this.#database = statSync(path)
    this.#log = statSync(`${path}-wal`)
    const { bsize, blocks } = statfsSync(dirname(path))
    this.logLimit = Math.min(LOG_LIMIT_BYTES.max, Math.max(LOG_LIMIT_BYTES.min, bsize * blocks * LOG_DISK_SHARE))
  }

  /** The length of the log (bytes). @throws Damaged when the files were moved away or replaced */
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

  /** Whether other files are at its path now. SQLite would remove their log when ours is closed. */
  isReplaced(): boolean {
    const replaced = (ours: Stats, there?: Stats) => !!there && !isSameFile(ours, there)
    return replaced(this.#database, statIfExists(this.path)) || replaced(this.#log, statIfExists(`${this.path}-wal`))
  }
}

/** @throws Damaged for a database that was made before and is missing or empty */
export function assertFile(path: string) {
  const file = statIfExists(path)
  if (!file) throw new DatabaseDamaged(undefined, `${path} is missing.`)
  if (!file.size) throw new DatabaseDamaged(undefined, `${path} is empty.`)
}

/** Whether this process may open no more files, which SQLite does not tell from other failures. */
export function isOutOfDescriptors(): boolean {
  try {
    closeSync(openSync(devNull, 'r'))
    return false
  } catch {
    return true
  }
}

/** Whether a file that SQLite could not open is there for us: then a descriptor was missing that is free again. */
export function canBeOpened(error: unknown, path: string): boolean {
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
