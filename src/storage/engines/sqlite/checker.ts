import { drivers } from './drivers'

declare const self: Worker

/** Which file to check, by which library: the one that may have it open. */
export type CheckOrder = { file: string; driver: keyof typeof drivers }

const FLAWS = 20

// Runs in a thread of its own: reads a whole database, and tells what is wrong with it.
self.onmessage = async ({ data: { file, driver } }: MessageEvent<CheckOrder>) => {
  self.postMessage(await flawsOf(file, driver).catch((error: Error) => [error.message]))
}

async function flawsOf(file: string, driver: keyof typeof drivers): Promise<string[]> {
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
    if (!version) return ['It is not a database of Atoll.']
    return ask(`pragma quick_check(${FLAWS})`).flatMap(([flaw]) => (flaw === 'ok' ? [] : [String(flaw)]))
  } finally {
    connection.close()
  }
}
