import type { CheckOrder } from './checker'

// A compiled binary has the code of its threads where its entry points are.
const inBinary = import.meta.url.includes('/$bunfs/')
const thread = new URL(inBinary ? './storage/engines/sqlite/checker.js' : './checker.ts', import.meta.url).href

/** Reads a whole database in a thread of its own. Returns what is wrong with it, at most 20 sentences of SQLite's. */
export async function checkFile(order: CheckOrder): Promise<string[]> {
  const worker = new Worker(thread)
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
