const GATHERING_MS = 10

/**
 * Returns a loader of single values by their names. It fetches those that are requested within a moment by one request;
 * a value that the answer does not have is undefined.
 */
export function createBatchLoader<Value>(
  fetchMany: (names: string[]) => Promise<Map<string, Value>>,
  maxNames: number,
) {
  let waiting = new Map<string, PromiseWithResolvers<Value | undefined>>()
  const flush = () => {
    const batch = [...waiting]
    waiting = new Map()
    for (let n = 0; n < batch.length; n += maxNames) {
      const part = batch.slice(n, n + maxNames)
      fetchMany(part.map(([name]) => name)).then(
        (found) => {
          for (const [name, { resolve }] of part) resolve(found.get(name))
        },
        (error) => {
          for (const [, { reject }] of part) reject(error)
        },
      )
    }
  }
  return (name: string): Promise<Value | undefined> => {
    if (!waiting.size) setTimeout(flush, GATHERING_MS)
    const entry = waiting.get(name) ?? Promise.withResolvers<Value | undefined>()
    waiting.set(name, entry)
    return entry.promise
  }
}
