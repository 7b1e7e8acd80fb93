import { logError } from '../core/log'
import { badRequest } from '../core/problem'
import { workerUrl } from '../core/worker-url'
import { FairSemaphore } from '../tenancy/fair-semaphore'
import type { Tenant } from '../tenancy/tenants'
import type { SanitizeResult } from './sanitizer-worker'

const SANITIZE_TIMEOUT_MS = 5_000 // ms; a text of the largest size takes some 50
// Inside a compiled binary all code is one file at its root, and the thread's is where the entry points have it.

const sanitizeSemaphore = new FairSemaphore(1, 100)
let workerThread: Worker | undefined

/**
 * What anybody's browser may be given of HTML, by the rules of `html.ts`. It is worked out in a thread, so nobody else
 * waits for it. @throws 400 for what is nested too deep or takes too long, 503 when too much is waiting already
 */
export async function sanitizeHtml(
  tenant: Pick<Tenant, 'tenant'>,
  html: string,
  timeoutMs = SANITIZE_TIMEOUT_MS,
): Promise<string> {
  const result = await sanitizeSemaphore.run(tenant, () => runInWorker(html, timeoutMs))
  return 'html' in result ? result.html : badRequest({ path: '/content', message: result.flaw })
}

function runInWorker(html: string, timeoutMs: number): Promise<SanitizeResult> {
  workerThread ??= new Worker(workerUrl('content/sanitizer-worker'))
  const worker = workerThread
  worker.unref()
  return new Promise((resolve, reject) => {
    const end = () => {
      worker.terminate()
      workerThread = undefined
    }
    const timer = setTimeout(() => {
      end()
      resolve({ flaw: 'The HTML is too complex to sanitize.' })
    }, timeoutMs)
    worker.onmessage = ({ data }: MessageEvent<SanitizeResult>) => {
      clearTimeout(timer)
      resolve(data)
    }
    worker.onerror = ({ message }) => {
      clearTimeout(timer)
      end()
      logError('SANITIZER_FAILED', { cause: message })
      reject(new Error('The sanitizer failed.'))
    }
    worker.postMessage(html)
  })
}
