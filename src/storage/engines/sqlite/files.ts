import { accessSync, closeSync, constants, openSync, type Stats, statfsSync, statSync } from 'node:fs'
import { devNull } from 'node:os'
import { dirname } from 'node:path'
import { causes } from '../../../core/log'
import { Damaged } from '../../errors'

/** A database's log may take this part of its disk, within bounds (bytes). */
const PART = 1 / 8
const LOG = { least: 4 << 20, most: 256 << 20 }

/** The files of a database that is open: whether they are still those at its path, and how long its log is. */
export class Files {
  #database: Stats
  #log: Stats
  /** How long the log should become at most (bytes). */
  readonly logLimit: number

  /** @param path of a database that was just opened, with its log */
  constructor(readonly path: string) {
    this.#database = statSync(path)
    this.#log = statSync(`${path}-wal`)
    const { bsize, blocks } = statfsSync(dirname(path))
    this.logLimit = Math.min(LOG.most, Math.max(LOG.least, bsize * blocks * PART))
  }

  /** The length of the log (bytes). @throws Damaged when the files were moved away or replaced */
  requireInPlace(): number {
    const log = found(`${this.path}-wal`)
    if (isSame(this.#database, found(this.path)) && log && isSame(this.#log, log)) return log.size
    throw new Damaged(undefined, `${this.path} was moved away or replaced while it was open.`)
  }

  areInPlace() {
    return isSame(this.#database, found(this.path)) && isSame(this.#log, found(`${this.path}-wal`))
  }

  /** Whether other files are at its path now. SQLite would remove their log when ours is closed. */
  areReplaced(): boolean {
    const replaced = (ours: Stats, there?: Stats) => !!there && !isSame(ours, there)
    return replaced(this.#database, found(this.path)) || replaced(this.#log, found(`${this.path}-wal`))
  }
}

/** @throws Damaged for a database that was made before and is missing or empty */
export function requireFile(path: string) {
  const file = found(path)
  if (!file) throw new Damaged(undefined, `${path} is missing.`)
  if (!file.size) throw new Damaged(undefined, `${path} is empty.`)
}

/** Whether this process may open no more files, which SQLite does not tell from other failures. */
export function areDescriptorsUsedUp(): boolean {
  try {
    closeSync(openSync(devNull, 'r'))
    return false
  } catch {
    return true
  }
}

/** Whether a file that SQLite could not open is there for us: then a descriptor was missing that is free again. */
export function couldBeOpened(error: unknown, path: string): boolean {
  if (!causes(error).some((cause) => (cause as { code?: string }).code === 'SQLITE_CANTOPEN')) return false
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    accessSync(dirname(path), constants.W_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

const found = (path: string) => statSync(path, { throwIfNoEntry: false })
const isSame = (one: Stats, other?: Stats) => one.ino === other?.ino && one.dev === other.dev
