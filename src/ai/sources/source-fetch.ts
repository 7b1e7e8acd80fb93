import { config } from '../../config'
import { isPrivateNetworkAllowed } from '../../connections/url-policy'
import { UpstreamUnreachable } from '../../core/http-client'
import { fetchExternalStream } from '../../core/http-stream'

const MAX_STREAM_BYTES = 64 << 20 // bytes of an answer that is read as it comes
const MAX_RESPONSE_BYTES = 16 << 20 // and of one that is read at once, while everybody waits

/** What a stream is asked for by. */
export const SSE_CONTENT_TYPE = 'text/event-stream'

type FetchInit = { method?: string; headers?: unknown; body?: unknown; signal?: AbortSignal | null }

/**
 * Asks another server as the client of OpenAI's would by `fetch`, under the bounds that all other servers are under. What it
 * makes no sense to try again is an answer that says so: nothing in time, an address that may not be asked, too many questions.
 */
export async function fetchSource(
  tenant: string,
  url: string,
  { method = 'GET', headers, body, signal }: FetchInit,
): Promise<Response> {
  const requestHeaders = new Headers(headers as Headers)
  for (const name of [...requestHeaders.keys()]) if (name.startsWith('x-stainless-')) requestHeaders.delete(name)
  requestHeaders.set('user-agent', 'atoll')
  const outboundRequest = { method, headers: requestHeaders, body: typeof body === 'string' ? Buffer.from(body) : null }
  const idleTimeout = config.ATOLL_AI_TIMEOUT
  const maxBytes = requestHeaders.get('accept') === SSE_CONTENT_TYPE ? MAX_STREAM_BYTES : MAX_RESPONSE_BYTES
  const limits = { tenant, privateNetwork: isPrivateNetworkAllowed(), head: idleTimeout, idleTimeout, limit: maxBytes }
  try {
    const response = await fetchExternalStream(
      url,
      { ...outboundRequest, signal: signal ?? new AbortController().signal },
      limits,
    )
    if (response.status === 429) response.headers.set(SHOULD_RETRY_HEADER, 'false')
    return new Response(response.body, { status: response.status, headers: response.headers })
  } catch (error) {
    const reason = error instanceof UpstreamUnreachable ? error.reason : 'unreachable'
    if (reason === 'unreachable') throw error
    return new Response(null, { status: reason === 'timeout' ? 504 : 502, headers: { [SHOULD_RETRY_HEADER]: 'false' } })
  }
}

/** By this the client is told whether to ask once more. */
const SHOULD_RETRY_HEADER = 'x-should-retry'
