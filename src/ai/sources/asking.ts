import { config } from '../../config'
import { Unreachable } from '../../core/outside'
import { outsideAsItComes } from '../../core/streaming'
import { privateNetwork } from '../../plugins/addresses'

const LIMIT = 64 << 20 // bytes of an answer

/** A server said nothing for too long, after it had begun to. */
export class Silent extends Error {}

type Init = { method?: string; headers?: unknown; body?: unknown; signal?: AbortSignal | null }

/**
 * Asks another server as the client of OpenAI's would by `fetch`, under the bounds that all other servers are under. What it
 * makes no sense to try again is an answer that says so: nothing in time, an address that may not be asked, too many questions.
 */
export async function asking(url: string, { method = 'GET', headers, body, signal }: Init): Promise<Response> {
  const sent = new Headers(headers as Headers)
  for (const name of [...sent.keys()]) if (name.startsWith('x-stainless-')) sent.delete(name)
  sent.set('user-agent', 'atoll')
  const question = { method, headers: sent, body: typeof body === 'string' ? Buffer.from(body) : null }
  const reach = { privateNetwork: privateNetwork(), head: config.ATOLL_AI_TIMEOUT }
  try {
    const answer = await outsideAsItComes(url, { ...question, signal: signal ?? new AbortController().signal }, reach)
    if (answer.status === 429) answer.headers.set(AGAIN, 'false')
    const told = answer.body instanceof ReadableStream ? bounded(answer.body) : answer.body
    return new Response(told, { status: answer.status, headers: answer.headers })
  } catch (error) {
    const why = error instanceof Unreachable ? error.why : 'unreachable'
    if (why === 'unreachable') throw error
    return new Response(null, { status: why === 'timeout' ? 504 : 502, headers: { [AGAIN]: 'false' } })
  }
}

/** By this the client is told whether to ask once more. */
const AGAIN = 'x-should-retry'

/** A body that breaks off where it stands still, or never ends. */
function bounded(body: ReadableStream<Uint8Array>) {
  const reader = body.getReader()
  let size = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const silent = () => {
          controller.error(new Silent('The server said nothing any more.'))
          reader.cancel().catch(() => {})
        }
        const timer = setTimeout(silent, config.ATOLL_AI_TIMEOUT)
        try {
          const { done, value } = await reader.read()
          if (done) return controller.close()
          size += value.byteLength
          if (size > LIMIT) throw new Error(`The answer has more than ${LIMIT} bytes.`)
          controller.enqueue(value)
        } finally {
          clearTimeout(timer)
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
