import type { OpenFile } from './drivers'

/** Returns the rows of one query of a file that nobody writes to. */
export function queryFile(connect: OpenFile, path: string, sql: string): unknown[][] {
  const connection = connect(path, true)
  try {
    connection.exec('pragma query_only = on')
    const statement = connection.prepare(sql)
    const rows = statement.values()
    statement.finalize()
    return rows
  } finally {
    connection.close()
  }
}
