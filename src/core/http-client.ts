import type { IncomingMessage } from 'node:http'
import type { gunzip } from 'node:zlib'
import { TooManyCalls, withOutboundCall } from './outbound-calls'
import { type OutboundRequest, sendOutboundRequest, toHeaders } from './outbound-request'
import { Problem } from './problem'
import { BlockedAddress, type OutboundPolicy } from './ssrf-guard'
import { callZlib } from './zlib-call'

/** The limits of a request to another server, and the policy for its address. */
export type FetchLimits = OutboundPolicy & {
  /** The tenant that makes the call. The call waits only for calls of this tenant. */
  tenant: string
  /** ms until the whole response must be there, including the wait for a turn. */
  timeout: number
  /** The most bytes that the response may have. */
  limit: number
  /** Truncates a longer response instead of failing. */
  truncate?: boolean
  /** How many redirects are followed (default: 0). Beyond that the redirect itself is the response. */
  redirects?: number
  /** The authority that signed the server's certificate, in place of the public authorities (PEM). */
  ca?: string
}

/** Why a request failed. It is for logs of the caller, not for strangers. */
export type FailureReason = 'refused' | 'timeout' | 'too-large' | 'unreachable'

/** The messages about failed requests to other servers. */
export const FAILURE_MESSAGES: Record<FailureReason, string> = {
  refused: 'Requests to this address are not allowed.',
  timeout: 'The server did not respond in time.',
  'too-large': 'The response was too large.',
  unreachable: 'The connection was refused or closed.',
}

/** 502 OUTSIDE_UNREACHABLE: another server did not respond. The message does not reveal what is at its address. */
export class UpstreamUnreachable extends Problem {
  constructor(
    readonly reason: FailureReason,
    cause: unknown,
  ) {
    super(502, 'OUTSIDE_UNREACHABLE', 'An external server did not respond as expected. Try again later.', { cause })
  }
}

class ResponseTooLarge extends Error {}

type Hop = { url: URL; request: OutboundRequest }

/**
 * Requests a URL that a tenant has configured, and returns the whole response. Unless private networks are allowed, the
 * host needs a public address, and the connection is made to the address that was checked. Redirects are checked alike.
 * A tenant may have 64 calls in progress, 8 of them to one host; further calls wait for their turn.
 * @throws 502 OUTSIDE_UNREACHABLE when the request fails, which reveals nothing about the address
 * @throws 503 BUSY when its turn did not come in time
 */
export async function fetchExternal(url: string, init: RequestInit, bounds: FetchLimits): Promise<Response> {
  const controller = new AbortController()
  const { signal } = controller
  let isTimedOut = false
  const timer = setTimeout(() => {
    isTimedOut = true
    controller.abort(new Error(`No response within ${bounds.timeout} ms.`))
  }, bounds.timeout)
  const forwardAbort = () => controller.abort(init.signal?.reason)
  if (init.signal?.aborted) forwardAbort()
  init.signal?.addEventListener('abort', forwardAbort)
  try {
    const request = await toOutboundRequest(init, signal)
    const response = await fetchFollowing({ url: new URL(url), request }, bounds, bounds.redirects ?? 0)
    // An abort ends the connection, which ends a response of unannounced length without an error.
    signal.throwIfAborted()
    return response
  } catch (cause) {
    if (cause instanceof TooManyCalls) throw cause
    throw new UpstreamUnreachable(isTimedOut ? 'timeout' : toFailureReason(cause), cause)
  } finally {
    clearTimeout(timer)
    init.signal?.removeEventListener('abort', forwardAbort)
  }
}

const toFailureReason = (cause: unknown): FailureReason =>
  cause instanceof BlockedAddress ? 'refused' : cause instanceof ResponseTooLarge ? 'too-large' : 'unreachable'

/** Returns the request with the headers that its body needs. */
async function toOutboundRequest(
  { method = 'GET', headers, body }: RequestInit,
  signal: AbortSignal,
): Promise<OutboundRequest> {
  const sentHeaders = new Headers(headers)
  // Some servers refuse requests without it, as ACME demands (RFC 8555, 6.1).
  if (!sentHeaders.has('user-agent')) sentHeaders.set('user-agent', 'atoll')
  if (!body) return { method: method.toUpperCase(), headers: sentHeaders, body: null, signal }
  if (typeof body === 'string' && sentHeaders.has('content-type'))
    return { method: method.toUpperCase(), headers: sentHeaders, body: Buffer.from(body), signal }
  const request = new Request('http://any.invalid', { method, headers: sentHeaders, body })
  return { method: request.method, headers: request.headers, body: await request.bytes(), signal }
}

async function fetchFollowing({ url, request }: Hop, bounds: FetchLimits, redirectsLeft: number): Promise<Response> {
  const outcome = await withOutboundCall(bounds.tenant, url.host, request.signal, async () => {
    const message = await sendOutboundRequest(bounds.tenant, url, request, bounds)
    const next = redirectsLeft > 0 ? redirectOf({ url, request }, message) : undefined
    if (next) message.destroy()
    return next ?? readResponse(message, request.method, bounds)
  })
  return outcome instanceof Response ? outcome : fetchFollowing(outcome, bounds, redirectsLeft - 1)
}

/** The headers of a request that may be forwarded to another origin. */
const CROSS_ORIGIN_HEADERS = ['accept', 'accept-language', 'user-agent']

/**
 * Returns the request that a redirect leads to (Fetch standard, HTTP-redirect fetch), or undefined when the response is
 * to be returned.
 */
function redirectOf({ url, request }: Hop, { statusCode = 0, headers }: IncomingMessage): Hop | undefined {
  const { location } = headers
  const to = URL.parse(location ?? '', url.href)
  if (location === undefined || !to || ![301, 302, 303, 307, 308].includes(statusCode)) return
  const { method, signal } = request
  const isRead = ['GET', 'HEAD'].includes(method)
  const becomesGet = statusCode === 303 ? !isRead : statusCode < 303 && method === 'POST'
  if (to.origin === url.origin && !becomesGet) return { url: to, request }
  // The body was meant for the first server only.
  if (!isRead && !becomesGet) return
  const forwarded = new Headers(request.headers)
  for (const name of [...forwarded.keys()])
    if (to.origin === url.origin ? name.startsWith('content-') : !CROSS_ORIGIN_HEADERS.includes(name))
      forwarded.delete(name)
  return { url: to, request: { signal, headers: forwarded, body: null, method: isRead ? method : 'GET' } }
}

/** Reads the whole response. */
async function readResponse(message: IncomingMessage, method: string, bounds: FetchLimits): Promise<Response> {
  const headers = toHeaders(message)
  const { statusCode: status = 502 } = message
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  // These headers describe the encoded bytes.
  for (const name of ['content-encoding', 'content-length', 'transfer-encoding']) headers.delete(name)
  const empty = method === 'HEAD' || [204, 205, 304].includes(status)
  const bytes = await collectBytes(message, bounds)
  // Without a body it must be null, not empty.
  return new Response(empty ? null : await decodeBody(bytes, encoding, bounds), { status, headers })
}

function collectBytes(
  message: IncomingMessage,
  { limit, truncate = false }: FetchLimits,
): Promise<Buffer<ArrayBuffer>> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer<ArrayBuffer>>()
  const chunks: Buffer[] = []
  let size = 0
  const end = () => resolve(Buffer.concat(chunks).subarray(0, limit))
  message.on('data', (chunk: Buffer) => {
    size += chunk.byteLength
    chunks.push(chunk)
    if (size <= limit) return
    if (truncate) end()
    else reject(new ResponseTooLarge(`The response has more than ${limit} bytes.`))
    message.destroy()
  })
  message.on('end', end).on('error', reject)
  message.on('close', () => reject(new Error('The response ended early.')))
  return promise
}

/** The functions of `node:zlib` that decode bodies, by their encodings. */
const DECODERS = { gzip: 'gunzip', 'x-gzip': 'gunzip', deflate: 'inflate', br: 'brotliDecompress' } as const

/** Decodes a compressed body, which some servers send unasked. A truncated body cannot be decoded and becomes empty. */
async function decodeBody(
  bytes: Buffer<ArrayBuffer>,
  encoding: string,
  { limit, truncate }: FetchLimits,
): Promise<Uint8Array<ArrayBuffer>> {
  if (!Object.hasOwn(DECODERS, encoding) || !bytes.byteLength) return bytes
  const decode = (await import('node:zlib'))[DECODERS[encoding as keyof typeof DECODERS]] as typeof gunzip
  try {
    return new Uint8Array(await callZlib((done) => decode(bytes, { maxOutputLength: limit }, done)))
  } catch (error) {
    if (truncate) return new Uint8Array()
    throw (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
      ? new ResponseTooLarge('The response is too large.')
      : error
  }
}
