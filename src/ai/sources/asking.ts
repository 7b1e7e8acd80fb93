import { config } from '../../config'
import { Unreachable } from '../../core/outside'
import { outsideAsItComes } from '../../core/streaming'
import { privateNetwork } from '../../plugins/addresses'

const STREAMED = 64 << 20 // bytes of an answer that is read as it comes
const WHOLE = 16 << 20 // and of one that is read at once, while everybody waits

/** What a stream is asked for by. */
export const EVENTS = 'text/event-stream'

type Init = { method?: string; headers?: unknown; body?: unknown; signal?: AbortSignal | null }

/**
 * Asks another server as the client of OpenAI's would by `fetch`, under the bounds that all other servers are under. What it
 * makes no sense to try again is an answer that says so: nothing in time, an address that may not be asked, too many questions.
 */
export async function asking(
  tenant: string,
  url: string,
  { method = 'GET', headers, body, signal }: Init,
): Promise<Response> {
  const sent = new Headers(headers as Headers)
  for (const name of [...sent.keys()]) if (name.startsWith('x-stainless-')) sent.delete(name)
  sent.set('user-agent', 'atoll')
  const question = { method, headers: sent, body: typeof body === 'string' ? Buffer.from(body) : null }
  const silence = config.ATOLL_AI_TIMEOUT
  const limit = sent.get('accept') === EVENTS ? STREAMED : WHOLE
  const reach = { tenant, privateNetwork: privateNetwork(), head: silence, silence, limit }
  try {
    const answer = await outsideAsItComes(url, { ...question, signal: signal ?? new AbortController().signal }, reach)
    if (answer.status === 429) answer.headers.set(AGAIN, 'false')
    return new Response(answer.body, { status: answer.status, headers: answer.headers })
  } catch (error) {
    const why = error instanceof Unreachable ? error.why : 'unreachable'
    if (why === 'unreachable') throw error
    return new Response(null, { status: why === 'timeout' ? 504 : 502, headers: { [AGAIN]: 'false' } })
  }
}

/** By this the client is told whether to ask once more. */
const AGAIN = 'x-should-retry'
