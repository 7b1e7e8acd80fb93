import { drivers } from './drivers'

declare const self: Worker

/** Which file to check, by which library: the one that may have it open. */
export type CheckRequest = { file: string; driver: keyof typeof drivers }

const MAX_FILE_ERRORS = 20

// Runs in a thread of its own: reads a whole database, and tells what is wrong with it.
self.onmessage = async ({ data: { file, driver } }: MessageEvent<CheckRequest>) => {
  self.postMessage(await listFileErrors(file, driver).catch((error: Error) => [error.message]))
}

async function listFileErrors(file: string, driver: keyof typeof drivers): Promise<string[]> {
  const connection = (await drivers[driver]())(file, true)
  try {
    connection.exec('pragma busy_timeout = 2000; pragma query_only = on')
    const ask = (sql: string) => {
      const statement = connection.prepare(sql)
      const rows = statement.values()
      statement.finalize()
      return rows
    }
    const [[version] = []] = ask('pragma user_version')
    if (!version) return ['The file is not an Atoll database.']
    return ask(`pragma quick_check(${MAX_FILE_ERRORS})`).flatMap(([error]) => (error === 'ok' ? [] : [String(error)]))
  } finally {
    connection.close()
  }
}
