import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { TooManyCalls, withOutboundCall } from './outbound-calls'
import { type OutboundRequest, sendOutboundRequest, toHeaders } from './outbound-request'
import { Problem } from './problem'
import { BlockedAddress, type OutboundPolicy } from './ssrf-guard'

/** What another server may cost us, and who it may be. */
export type FetchLimits = OutboundPolicy & {
  /** Whose call it is: what it has to wait for are calls of this tenant. */
  tenant: string
  /** ms until all of its answer is there, waiting for its turn included. */
  timeout: number
  /** Bytes of its answer. */
  limit: number
  /** Whether an answer with more of them is cut there, instead of none. */
  truncate?: boolean
  /** How many redirections are followed; without, one is an answer like others. */
  redirects?: number
  /** Who vouches for its certificate, instead of the public authorities (PEM). */
  ca?: string
}

/** Why there is no answer: for the log of those who asked, not for strangers. */
export type FailureReason = 'refused' | 'timeout' | 'too-large' | 'unreachable'

/** What people read about a request to another server that failed. */
export const FAILURE_MESSAGES: Record<FailureReason, string> = {
  refused: 'Requests to this address are not allowed.',
  timeout: 'The server did not respond in time.',
  'too-large': 'The response was too large.',
  unreachable: 'The connection was refused or closed.',
}

/** What is told of a server that gives no answer: nothing of what is there. */
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
 * Asks another server, which some tenant has named, and reads its answer whole. Into the network of this installation
 * nobody gets by it: unless that is allowed, hosts need a public address, and the connection is made to the very
 * address that was looked at. Redirections are looked at as addresses are. Of one tenant 64 calls are under way, 8 of them
 * at one host; others wait for their turn.
 * @throws 502 OUTSIDE_UNREACHABLE, which tells nothing of what is there, 503 BUSY when its turn did not come in time
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
    // One whose length was not told ends with its connection, also when we end that.
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

/** What is to be sent, with the headers that its body asks for. */
async function toOutboundRequest(
  { method = 'GET', headers, body }: RequestInit,
  signal: AbortSignal,
): Promise<OutboundRequest> {
  const sentHeaders = new Headers(headers)
  if (!body) return { method: method.toUpperCase(), headers: sentHeaders, body: null, signal }
  if (typeof body === 'string' && sentHeaders.has('content-type'))
    return { method: method.toUpperCase(), headers: sentHeaders, body: Buffer.from(body), signal }
  const request = new Request('http://any.invalid', { method, headers, body })
  return { method: request.method, headers: request.headers, body: await request.bytes(), signal }
}

async function fetchFollowing(
  { url, request: asked }: Hop,
  bounds: FetchLimits,
  redirectsLeft: number,
): Promise<Response> {
  const outcome = await withOutboundCall(bounds.tenant, url.host, asked.signal, async () => {
    const message = await sendOutboundRequest(bounds.tenant, url, asked, bounds)
    const next = redirectsLeft > 0 ? redirectOf({ url, request: asked }, message) : undefined
    if (next) message.destroy()
    return next ?? readResponse(message, asked.method, bounds)
  })
  return outcome instanceof Response ? outcome : fetchFollowing(outcome, bounds, redirectsLeft - 1)
}

/** What another origin may know of the question. */
const CROSS_ORIGIN_HEADERS = ['accept', 'accept-language', 'user-agent']

/** The request that a redirection asks for (Fetch standard, HTTP-redirect fetch); undefined where it is an answer. */
function redirectOf({ url, request: asked }: Hop, { statusCode = 0, headers }: IncomingMessage): Hop | undefined {
  const { location } = headers
  const to = URL.parse(location ?? '', url.href)
  if (location === undefined || !to || ![301, 302, 303, 307, 308].includes(statusCode)) return
  const { method, signal } = asked
  const isRead = ['GET', 'HEAD'].includes(method)
  const becomesGet = statusCode === 303 ? !isRead : statusCode < 303 && method === 'POST'
  if (to.origin === url.origin && !becomesGet) return { url: to, request: asked }
  // What is sent was meant for the one who was asked, and for nobody else.
  if (!isRead && !becomesGet) return
  const forwarded = new Headers(asked.headers)
  for (const name of [...forwarded.keys()])
    if (to.origin === url.origin ? name.startsWith('content-') : !CROSS_ORIGIN_HEADERS.includes(name))
      forwarded.delete(name)
  return { url: to, request: { signal, headers: forwarded, body: null, method: isRead ? method : 'GET' } }
}

/** The whole answer. */
async function readResponse(message: IncomingMessage, method: string, bounds: FetchLimits): Promise<Response> {
  const headers = toHeaders(message)
  const { statusCode: status = 502 } = message
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  // They are about the bytes on the way.
  for (const name of ['content-encoding', 'content-length', 'transfer-encoding']) headers.delete(name)
  const empty = method === 'HEAD' || [204, 205, 304].includes(status)
  const bytes = await collectBytes(message, bounds)
  // What has no body must not get an empty one.
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

const decoders: Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
}

/** Nobody asks for a compressed answer, but some send one. What is cut can't be decoded. */
async function decodeBody(
  bytes: Buffer<ArrayBuffer>,
  encoding: string,
  { limit, truncate }: FetchLimits,
): Promise<Uint8Array<ArrayBuffer>> {
  const decode = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
  if (!decode || !bytes.byteLength) return bytes
  try {
    return new Uint8Array(await decode(bytes, { maxOutputLength: limit }))
  } catch (error) {
    if (truncate) return new Uint8Array()
    throw (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
      ? new ResponseTooLarge('The response is too large.')
      : error
  }
}
