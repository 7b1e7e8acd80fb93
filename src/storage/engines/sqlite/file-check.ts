import { workerUrl } from '../../../core/worker-url'
import type { CheckRequest } from './file-check-worker'

/** Reads a whole database in a worker thread. Returns what is wrong with it, at most 20 sentences of SQLite. */
export async function checkFile(order: CheckRequest): Promise<string[]> {
  const worker = new Worker(workerUrl('storage/engines/sqlite/file-check-worker'))
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
