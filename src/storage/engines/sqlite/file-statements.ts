import { retryWhenBusy } from '../../errors'
import { CachedConnection } from './connection'
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

/** Runs one statement in a file that others may use, durably. Its schema is not brought up to date. */
export async function executeInFile(
  connect: OpenFile,
  path: string,
  lockTimeout: number,
  sql: string,
  params: unknown[],
): Promise<void> {
  const connection = new CachedConnection(connect(path, true), lockTimeout)
  try {
    await connection.executePatiently('pragma synchronous = full')
    await retryWhenBusy(() => connection.query(sql, params))
  } finally {
    connection.close()
  }
}
