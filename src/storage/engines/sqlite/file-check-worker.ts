import { isDerivedTable } from '../../schema-catalog'
import { drivers, type SqliteConnection } from './drivers'

declare const self: Worker

type DriverName = keyof typeof drivers

/**
 * The file to check, and the SQLite library to use: the one that may have the file open. A complete check also compares
 * indexes with their tables, counts all rows, and opens the file with the other libraries of this installation. A file
 * that nobody else uses may be mapped into memory, which saves a third of the time.
 */
export type CheckRequest = { file: string; driver: DriverName; isComplete?: boolean; isMapped?: boolean }

/** What is wrong with a file, in SQLite's words; and of a sound file, after a complete check, what it contains. */
export type CheckResult = { flaws: string[]; contents?: FileContents }

/** The number of rows by table, without derived ones, and the libraries that could read the file. */
export type FileContents = { schemaVersion: number; rows: Record<string, number>; drivers: DriverName[] }

const MAX_FILE_ERRORS = 20
const MAX_MAPPED_BYTES = 2 ** 31 - 65_536 // the most that SQLite maps

// Runs in a worker thread: reads a whole database and reports what is wrong with it.
self.onmessage = async ({ data }: MessageEvent<CheckRequest>) => {
  self.postMessage(await checkFile(data).catch((error: Error): CheckResult => ({ flaws: [error.message] })))
}

async function checkFile({ file, driver, isComplete = false, isMapped = false }: CheckRequest): Promise<CheckResult> {
  const flaws: string[] = []
  const contents = await withConnection(driver, file, (connection) => {
    if (isMapped) connection.exec(`pragma mmap_size = ${MAX_MAPPED_BYTES}`)
    const [[version] = []] = readRows(connection, 'pragma user_version')
    if (!version) return void flaws.push('The file is not an Atoll database.')
    const check = isComplete ? 'integrity_check' : 'quick_check'
    for (const [message] of readRows(connection, `pragma ${check}(${MAX_FILE_ERRORS})`))
      if (message !== 'ok') flaws.push(String(message))
    if (isComplete && !flaws.length) return { schemaVersion: Number(version), rows: countRows(connection) }
  })
  if (!contents) return { flaws }
  const readers = [driver]
  for (const other of Object.keys(drivers) as DriverName[])
    if (other !== driver && (await canReadFile(other, file, contents.rows))) readers.push(other)
  return { flaws, contents: { ...contents, drivers: readers } }
}

/** Tells whether a library of this installation reads the same file. @throws when it reads something else */
async function canReadFile(driver: DriverName, file: string, expected: Record<string, number>): Promise<boolean> {
  // A compiled binary contains one library only.
  if (!(await drivers[driver]().catch(() => undefined))) return false
  const rows = await withConnection(driver, file, countRows)
  if (Bun.deepEquals(rows, expected)) return true
  throw new Error(`${driver} reads other numbers of rows.`)
}

async function withConnection<T>(driver: DriverName, file: string, work: (connection: SqliteConnection) => T) {
  const connection = (await drivers[driver]())(file, true)
  try {
    connection.exec('pragma busy_timeout = 2000; pragma query_only = on')
    return work(connection)
  } finally {
    connection.close()
  }
}

function readRows(connection: SqliteConnection, sql: string): unknown[][] {
  const statement = connection.prepare(sql)
  const rows = statement.values()
  statement.finalize()
  return rows
}

function countRows(connection: SqliteConnection): Record<string, number> {
  const tables = readRows(
    connection,
    "select name from sqlite_schema where type = 'table' and substr(name, 1, 7) <> 'sqlite_' order by name",
  ).flatMap(([name]) => (isDerivedTable(String(name)) ? [] : [String(name)]))
  const counts = tables.map((name) => [name, Number(readRows(connection, `select count(*) from "${name}"`)[0]![0])])
  return Object.fromEntries(counts)
}
