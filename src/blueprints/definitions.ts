import type { Db } from '../storage/port'
import type { Definition } from './shapes'

const DEFINITIONS_PER_READ = 20 // each may be a megabyte

/** Yields the definitions of all blueprints with their keys, in the order of the keys, some at a time. */
export async function* readDefinitions(db: Db): AsyncGenerator<[key: string, definition: Definition][], void> {
  for (let last = ''; ; ) {
    const rows = (await db.query('select key, definition from blueprints where key > ? order by key limit ?', [
      last,
      DEFINITIONS_PER_READ,
    ])) as [string, string][]
    if (rows.length) yield rows.map(([key, definition]) => [key, JSON.parse(definition)])
    if (rows.length < DEFINITIONS_PER_READ) return
    last = rows.at(-1)![0]
  }
}
