import { workerUrl } from '../../../core/worker-url'
import type { CheckRequest, CheckResult } from './file-check-worker'

/** Reads a whole database in a worker thread. Returns what is wrong with it, at most 20 sentences of SQLite. */
export async function checkFile(request: CheckRequest): Promise<CheckResult> {
  const worker = new Worker(workerUrl('storage/engines/sqlite/file-check-worker'))
  try {
    return await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<CheckResult>) => resolve(data)
      worker.onerror = ({ message }) => reject(new Error(message))
      worker.postMessage(request)
    })
  } finally {
    worker.terminate()
  }
}
