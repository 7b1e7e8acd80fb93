import { report } from '../core/log'
import { invalid } from '../core/problem'
import type { Tenant } from '../tenancy/tenants'
import { Turns } from '../tenancy/turns'
import type { Sanitized } from './sanitizing'

const PATIENCE = 5_000 // ms; a text of the largest size takes some 50
// Inside a compiled binary all code is one file at its root, and the thread's is where the entry points have it.
const file = import.meta.url.includes('/$bunfs/') ? './content/sanitizing.js' : './sanitizing.ts'

const turns = new Turns(1, 100)
let thread: Worker | undefined

/**
 * What anybody's browser may be given of HTML, by the rules of `html.ts`. It is worked out in a thread, so nobody else
 * waits for it. @throws 400 for what is nested too deep or takes too long, 503 when too much is waiting already
 */
export async function sanitized(tenant: Pick<Tenant, 'tenant'>, html: string, patience = PATIENCE): Promise<string> {
  const result = await turns.take(tenant, () => run(html, patience))
  return 'html' in result ? result.html : invalid({ path: '/content', message: result.flaw })
}

function run(html: string, patience: number): Promise<Sanitized> {
  thread ??= new Worker(new URL(file, import.meta.url).href)
  const worker = thread
  worker.unref()
  return new Promise((resolve, reject) => {
    const end = () => {
      worker.terminate()
      thread = undefined
    }
    const timer = setTimeout(() => {
      end()
      resolve({ flaw: 'It takes too long to find what is harmless in it.' })
    }, patience)
    worker.onmessage = ({ data }: MessageEvent<Sanitized>) => {
      clearTimeout(timer)
      resolve(data)
    }
    worker.onerror = ({ message }) => {
      clearTimeout(timer)
      end()
      report('SANITIZER_FAILED', { cause: message })
      reject(new Error('The sanitizer failed.'))
    }
    worker.postMessage(html)
  })
}
