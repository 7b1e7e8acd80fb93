import { Problem } from '../../core/problem'
import type { RunQuery } from '../../storage/port'
import { queryDatabaseFile } from '../../tenancy/databases'
import type { RowFilter } from '../rows'
import { contentNames } from './content-names'
import { isContentHash } from './content-store'

/** A content that a database names, its size in bytes, and the name of a file, or one of a site, that has it: null while none has. */
export type NamedContent = { sha256: string; size: number; file: string | null }

const CONTENTS = `select c.sha256, c.size, (select min(f.name) from files f where f.sha256 = c.sha256)
  from file_contents c where c.removing = 0`
const HASHES_OF_FILES = 'select distinct sha256 from files'

/**
 * Returns the contents that a copy of a database names, by queries that it answers.
 * @throws 409 BACKUP_DAMAGED when a hash is none: it would become a part of a path
 */
export async function listNamedContents(query: RunQuery): Promise<NamedContent[]> {
  const [table] = await query("select 1 from sqlite_schema where name = 'file_contents'")
  if (!table) return [] // an earlier version made it
  const rows = await query(CONTENTS)
  for (const [sha256] of [...rows, ...(await query(HASHES_OF_FILES))]) assertHash(sha256)
  const otherNames = new Map<unknown, string>()
  for (const { table, column, list } of contentNames()) {
    const [exists] = await query(`select 1 from sqlite_schema where name = '${table}'`)
    for (const [value] of exists ? await query(`select ${column} from ${table}`) : [])
      for (const [sha256, name] of list(String(value))) otherNames.set(sha256, name)
  }
  return rows.map(([sha256, size, file]) => ({
    sha256: String(sha256),
    size: Number(size),
    file: file === null ? (otherNames.get(sha256) ?? null) : String(file),
  }))
}

function assertHash(sha256: unknown) {
  if (!isContentHash(String(sha256)))
    throw new Problem(409, 'BACKUP_DAMAGED', 'The file cannot be used: the hash of a content is invalid.')
}

/** Returns the contents that the database in a file at any path names, which is not changed. */
export const listContentsOfFile = (path: string): Promise<NamedContent[]> =>
  listNamedContents(async (sql) => queryDatabaseFile(path, sql))

/** Notes the contents that rows name as they pass. */
export class ContentCollector {
  #sizes = new Map<string, number>()
  #files = new Map<string, string>()
  #otherNames = new Map<string, string>()

  /** Of several files with one content, the first by name stands for it, in whichever order they pass. */
  #noteFile(sha256: string, name: string) {
    const known = this.#files.get(sha256)
    if (known === undefined || name < known) this.#files.set(sha256, name)
  }

  /** Passes every row on unchanged. */
  readonly filter: RowFilter = (table, row) => {
    if (table === 'file_contents' && !Number(row.removing)) this.#sizes.set(String(row.sha256), Number(row.size))
    if (table === 'files') this.#noteFile(String(row.sha256), String(row.name))
    for (const names of contentNames())
      if (names.table === table)
        for (const [sha256, name] of names.list(String(row[names.column]))) this.#otherNames.set(sha256, name)
    return row
  }

  /** Returns the contents of the rows that have passed. */
  list(): NamedContent[] {
    return [...this.#sizes].map(([sha256, size]) => ({
      sha256,
      size,
      file: this.#files.get(sha256) ?? this.#otherNames.get(sha256) ?? null,
    }))
  }
}
