import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { OpenFile } from './drivers'

/** Where the header of a file has its `application_id` (https://sqlite.org/fileformat2.html). */
const APPLICATION_ID_OFFSET = 68

// Each of some 180 tables and indexes takes a page, and a small write changes about ten. With pages of 4,096 bytes, a
// new tenant takes twice the room, and a commit logs twice as much.
const PAGE_BYTES = 2_048

/**
 * Creates new databases as copies of one that has the current schema, because making that for each takes several times
 * as long.
 */
export class DatabaseTemplate {
  #bytesByMigrations = new WeakMap<string[], Buffer>()

  /** @param folder where the template is made, for a moment */
  constructor(private folder: string) {}

  /** Creates a database with the mark of its owner, unless there is a file already. */
  create(connect: OpenFile, path: string, mark: number, migrations: string[]) {
    const bytes = this.#bytesByMigrations.get(migrations) ?? this.#make(connect, migrations)
    this.#bytesByMigrations.set(migrations, bytes)
    bytes.writeUInt32BE(mark, APPLICATION_ID_OFFSET)
    const draft = `${path}.${crypto.randomUUID()}`
    const file = openSync(draft, 'wx', 0o600)
    try {
      writeSync(file, bytes)
      fsyncSync(file)
      linkSync(draft, path)
    } catch (error) {
      // Another process was first.
      if ((error as { code?: string }).code !== 'EEXIST') throw error
    } finally {
      closeSync(file)
      rmSync(draft, { force: true })
    }
  }

  #make(connect: OpenFile, migrations: string[]): Buffer {
    const folder = join(this.folder, `.template-${crypto.randomUUID()}`)
    mkdirSync(folder, { mode: 0o700 })
    try {
      const path = join(folder, 'data.db')
      const connection = connect(path)
      connection.exec(`pragma page_size = ${PAGE_BYTES}; pragma journal_mode = wal; pragma synchronous = off; begin`)
      for (const sql of migrations) connection.exec(sql)
      connection.exec(`pragma user_version = ${migrations.length}; commit; vacuum; pragma wal_checkpoint(truncate)`)
      connection.close()
      return readFileSync(path)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
