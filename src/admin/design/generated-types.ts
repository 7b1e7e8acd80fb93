import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'

/** The file of types or the client of all blueprints, as the server generates it. */
export const generatedFileQuery = (file: 'types.d.ts' | 'client.ts') =>
  queryOptions({
    queryKey: ['blueprints', 'generated', file],
    queryFn: () =>
      fetchData(
        file === 'client.ts'
          ? api.GET('/api/blueprints/client.ts', { parseAs: 'text' })
          : api.GET('/api/blueprints/types.d.ts', { parseAs: 'text' }),
      ) as Promise<string>,
  })

/** Returns the part of the generated types that is about one blueprint; all of them, if it cannot be told apart. */
export function cutTypes(types: string, key: string): string {
  const entry = new RegExp(
    `^export interface Blueprints \\{\\n\\s+(?:'${key}'|"${key}"|${key}): [\\s\\S]*?^\\}\\n`,
    'm',
  )
  const match = entry.exec(types)
  if (!match) return types
  const before = types.slice(0, match.index)
  const begin = before.lastIndexOf('extends Entity<')
  const line = before.lastIndexOf('export interface', begin)
  // A comment above the first interface belongs to it.
  const comment = /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n$/.exec(before.slice(0, line))
  return types.slice(comment ? comment.index : line, match.index + match[0].length)
}
