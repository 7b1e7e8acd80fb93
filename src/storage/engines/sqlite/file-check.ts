import type { CheckRequest } from './file-check-worker'

// A compiled binary has the code of its threads where its entry points are.
const IS_COMPILED = import.meta.url.includes('/$bunfs/')
const WORKER_URL = new URL(
  IS_COMPILED ? './storage/engines/sqlite/file-check-worker.js' : './file-check-worker.ts',
  import.meta.url,
).href

/** Reads a whole database in a thread of its own. Returns what is wrong with it, at most 20 sentences of SQLite's. */
export async function checkFile(order: CheckRequest): Promise<string[]> {
  const worker = new Worker(WORKER_URL)
  try {
    return await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<string[]>) => resolve(data)
      worker.onerror = ({ message }) => reject(new Error(message))
      worker.postMessage(order)
    })
  } finally {
    worker.terminate()
  }
}
