import type { OpenFile } from './drivers'

const LOCK_TIMEOUT_MS = 1_000 // another reader may recover the log of the file just now

/** Returns the rows of one query of a file that nobody writes to. */
export function queryFile(connect: OpenFile, path: string, sql: string): unknown[][] {
  const connection = connect(path, true)
  try {
    connection.exec(`pragma busy_timeout = ${LOCK_TIMEOUT_MS}; pragma query_only = on`)
    const statement = connection.prepare(sql)
    const rows = statement.values()
    statement.finalize()
    return rows
  } finally {
    connection.close()
  }
}
