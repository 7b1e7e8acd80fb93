import { setTimeout as sleep } from 'node:timers/promises'
import { config } from '../../config'
import { joinUrl } from '../../connections/kinds/probe'
import { isPrivateNetworkAllowed } from '../../connections/url-policy'
import { UpstreamUnreachable } from '../../core/http-client'
import { fetchExternalStream, type UpstreamBody } from '../../core/http-stream'
import { parseRetryAfter } from '../../core/retry-after'

const MAX_STREAM_BYTES = 64 << 20 // bytes of a streamed answer
const MAX_RESPONSE_BYTES = 16 << 20 // bytes of an answer that is read as a whole, which blocks the process while it is parsed
const MAX_RETRIES = 2
const FIRST_RETRY_MS = 500 // doubled for the second retry
const MAX_RETRY_WAIT_MS = 60_000

/** A request to a server with OpenAI's API. `body` is JSON. */
export type SourceRequest = { body: Buffer; signal?: AbortSignal; isStream?: boolean }

/** Where a source is, and the key that it wants. */
export type SourceAddress = { tenant: string; apiUrl: string; token?: string }

/** A source answered with a status that is no success. */
export class SourceStatusError extends Error {
  constructor(
    readonly status: number,
    readonly headers: Headers,
  ) {
    super(`The AI source answered ${status}.`)
  }
}

/**
 * Sends a request to a source, with the limits of all outbound requests, and returns the body of its successful response.
 * A request that failed for a reason that may pass is sent again, twice at most.
 * @throws SourceStatusError, UpstreamUnreachable, the reason of the signal
 */
export async function postToSource(
  address: SourceAddress,
  path: string,
  request: SourceRequest,
): Promise<UpstreamBody> {
  const { signal = new AbortController().signal } = request
  for (let retry = 0; ; retry++) {
    try {
      return await postOnce(address, path, { ...request, signal })
    } catch (error) {
      signal.throwIfAborted()
      if (retry === MAX_RETRIES || !mayPass(error)) throw error
      await sleep(retryDelay(error, retry), undefined, { signal })
    }
  }
}

async function postOnce(
  { tenant, apiUrl, token }: SourceAddress,
  path: string,
  { body, signal, isStream }: SourceRequest & { signal: AbortSignal },
): Promise<UpstreamBody> {
  const url = new URL(apiUrl)
  url.pathname = joinUrl(url.pathname, path)
  const headers = new Headers({
    'user-agent': 'atoll',
    'content-type': 'application/json',
    accept: isStream ? 'text/event-stream' : 'application/json',
    ...(token && { authorization: `Bearer ${token}` }),
  })
  const idleTimeout = config.ATOLL_AI_TIMEOUT
  const limit = isStream ? MAX_STREAM_BYTES : MAX_RESPONSE_BYTES
  const limits = { tenant, privateNetwork: isPrivateNetworkAllowed(), head: idleTimeout, idleTimeout, limit }
  // It is sent again after most failures, so it may go over a connection that the server is about to close.
  const request = { method: 'POST', headers, body, signal, isRepeatable: true }
  const response = await fetchExternalStream(url.href, request, limits)
  const { status, headers: responseHeaders, body: responseBody } = response
  if (status >= 200 && status < 300) return responseBody
  // Its status says enough.
  if (responseBody instanceof ReadableStream) responseBody.cancel().catch(() => {})
  throw new SourceStatusError(status, responseHeaders)
}

/** Tells whether a failure may pass soon. A server that limits our rate is not asked again. */
function mayPass(error: unknown) {
  if (error instanceof UpstreamUnreachable) return error.reason === 'unreachable'
  if (!(error instanceof SourceStatusError) || error.status === 429) return false
  const wish = error.headers.get('x-should-retry')
  return wish === 'true' || (wish !== 'false' && (error.status >= 500 || [408, 409].includes(error.status)))
}

function retryDelay(error: unknown, retry: number): number {
  const headers = error instanceof SourceStatusError ? error.headers : undefined
  const asked = Number(headers?.get('retry-after-ms')) || parseRetryAfter(headers?.get('retry-after'))
  if (asked !== undefined && asked >= 0 && asked <= MAX_RETRY_WAIT_MS) return asked
  return FIRST_RETRY_MS * 2 ** retry * (1 - Math.random() / 4)
}
