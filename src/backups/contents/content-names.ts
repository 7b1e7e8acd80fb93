import { extensions } from '../../core/extension'
import type { RunQuery } from '../../storage/port'

/** A column whose texts name contents that are not of the table of files. */
export type ContentNames = {
  table: string
  column: string
  /** Yields each content of a value by its hash, with a name for people. */
  list(value: string): Iterable<[sha256: string, name: string]>
}

/** What names contents besides the table of files. */
export const contentNames = extensions<ContentNames>('columns that name contents')

/** Returns the contents that are named besides the table of files: a name for people by each hash. */
export async function listContentNames(query: RunQuery): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  for (const { table, column, list } of contentNames())
    for (const [value] of await query(`select ${column} from ${table}`))
      for (const [sha256, name] of list(String(value))) names.set(sha256, name)
  return names
}
