import { config } from '../../config'
import { isPrivateNetworkAllowed } from '../../connections/url-policy'
import { UpstreamUnreachable } from '../../core/http-client'
import { fetchExternalStream } from '../../core/http-stream'

const MAX_STREAM_BYTES = 64 << 20 // bytes of a streamed answer
const MAX_RESPONSE_BYTES = 16 << 20 // bytes of an answer that is read as a whole, which blocks the process while it is parsed

export const SSE_CONTENT_TYPE = 'text/event-stream'

type FetchInit = { method?: string; headers?: unknown; body?: unknown; signal?: AbortSignal | null }

/**
 * The `fetch` of OpenAI's client, with the limits of all outbound requests. Failures that a retry would not help, which are
 * timeouts, forbidden addresses and rate limits, become an answer that tells the client not to retry.
 * @throws UpstreamUnreachable when the server cannot be reached
 */
export async function fetchSource(
  tenant: string,
  url: string,
  { method = 'GET', headers, body, signal }: FetchInit,
): Promise<Response> {
  const requestHeaders = new Headers(headers as Headers)
  for (const name of [...requestHeaders.keys()]) if (name.startsWith('x-stainless-')) requestHeaders.delete(name)
  requestHeaders.set('user-agent', 'atoll')
  const outboundRequest = { method, headers: requestHeaders, body: toBuffer(body) }
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

const toBuffer = (body: unknown) =>
  body instanceof Buffer ? body : typeof body === 'string' ? Buffer.from(body) : null

/** Tells OpenAI's client whether to retry. */
const SHOULD_RETRY_HEADER = 'x-should-retry'
