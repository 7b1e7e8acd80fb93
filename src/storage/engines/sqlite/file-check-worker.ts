import { drivers } from './drivers'

declare const self: Worker

/** The file to check, and the SQLite library to use: the one that may have the file open. */
export type CheckRequest = { file: string; driver: keyof typeof drivers }

const MAX_FILE_ERRORS = 20

// Runs in a worker thread: reads a whole database and reports what is wrong with it.
self.onmessage = async ({ data: { file, driver } }: MessageEvent<CheckRequest>) => {
  self.postMessage(await listFileErrors(file, driver).catch((error: Error) => [error.message]))
}

async function listFileErrors(file: string, driver: keyof typeof drivers): Promise<string[]> {
  const connection = (await drivers[driver]())(file, true)
  try {
    connection.exec('pragma busy_timeout = 2000; pragma query_only = on')
    const runQuery = (sql: string) => {
      const statement = connection.prepare(sql)
      const rows = statement.values()
      statement.finalize()
      return rows
    }
    const [[version] = []] = runQuery('pragma user_version')
    if (!version) return ['The file is not an Atoll database.']
    return runQuery(`pragma quick_check(${MAX_FILE_ERRORS})`).flatMap(([error]) =>
      error === 'ok' ? [] : [String(error)],
    )
  } finally {
    connection.close()
  }
}
