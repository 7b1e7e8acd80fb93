import type { PublicCtx } from '../accounts/context'
import { toWorkOwner } from '../accounts/work-owner'
import { FairShare } from '../core/fair-share'
import { logError } from '../core/log'
import { badRequest } from '../core/problem'
import { workerUrl } from '../core/worker-url'
import type { SanitizeResult } from './sanitizer-worker'

const SANITIZE_TIMEOUT_MS = 5_000 // a text of the maximum size takes about 50 ms

const sanitizerShare = new FairShare({ running: { total: 1 }, waiting: { perTenant: 100 }, turnMs: 10 })
let workerThread: Worker | undefined

/**
 * Returns HTML that is safe for every browser, by the policy of `html-policy.ts`. A thread does the work, so that other
 * requests need not wait.
 * @throws 400 when it is nested too deeply or takes too long, 503 when too many texts are waiting
 */
export async function sanitizeHtml(
  ctx: Pick<PublicCtx, 'tenant' | 'actor'>,
  html: string,
  timeoutMs = SANITIZE_TIMEOUT_MS,
): Promise<string> {
  const result = await sanitizerShare.run(toWorkOwner(ctx), () => runInWorker(html, timeoutMs))
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
