import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { type Reach, Refused } from './addresses'
import { type HttpRequest, headersOf, sendHttpRequest } from './http-request'
import { TooManyCalls, withOutgoingCall } from './outgoing-calls'
import { Problem } from './problem'

/** What another server may cost us, and who it may be. */
export type Bounds = Reach & {
  /** Whose call it is: what it has to wait for are calls of this tenant. */
  tenant: string
  /** ms until all of its answer is there, waiting for its turn included. */
  timeout: number
  /** Bytes of its answer. */
  limit: number
  /** Whether an answer with more of them is cut there, instead of none. */
  cut?: boolean
  /** How many redirections are followed; without, one is an answer like others. */
  redirects?: number
  /** Who vouches for its certificate, instead of the public authorities (PEM). */
  ca?: string
}

/** Why there is no answer: for the log of those who asked, not for strangers. */
export type Why = 'refused' | 'timeout' | 'too-large' | 'unreachable'

/** What is told of a server that gives no answer: nothing of what is there. */
export class Unreachable extends Problem {
  constructor(
    readonly why: Why,
    cause: unknown,
  ) {
    super(502, 'OUTSIDE_UNREACHABLE', 'Another server did not answer as it should. Try again later.', { cause })
  }
}

class TooLarge extends Error {}

type Asked = { url: URL; asked: HttpRequest }

/**
 * Asks another server, which some tenant has named, and reads its answer whole. Into the network of this installation
 * nobody gets by it: unless that is allowed, hosts need a public address, and the connection is made to the very
 * address that was looked at. Redirections are looked at as addresses are. Of one tenant 64 calls are under way, 8 of them
 * at one host; others wait for their turn.
 * @throws 502 OUTSIDE_UNREACHABLE, which tells nothing of what is there, 503 BUSY when its turn did not come in time
 */
export async function outside(url: string, init: RequestInit, bounds: Bounds): Promise<Response> {
  const ending = new AbortController()
  const { signal } = ending
  let late = false
  const timer = setTimeout(() => {
    late = true
    ending.abort(new Error(`No answer within ${bounds.timeout} ms.`))
  }, bounds.timeout)
  const give = () => ending.abort(init.signal?.reason)
  if (init.signal?.aborted) give()
  init.signal?.addEventListener('abort', give)
  try {
    const asked = await requestOf(init, signal)
    const answer = await follow({ url: new URL(url), asked }, bounds, bounds.redirects ?? 0)
    // One whose length was not told ends with its connection, also when we end that.
    signal.throwIfAborted()
    return answer
  } catch (cause) {
    if (cause instanceof TooManyCalls) throw cause
    throw new Unreachable(late ? 'timeout' : whyOf(cause), cause)
  } finally {
    clearTimeout(timer)
    init.signal?.removeEventListener('abort', give)
  }
}

const whyOf = (cause: unknown): Why =>
  cause instanceof Refused ? 'refused' : cause instanceof TooLarge ? 'too-large' : 'unreachable'

/** What is to be sent, with the headers that its body asks for. */
async function requestOf({ method = 'GET', headers, body }: RequestInit, signal: AbortSignal): Promise<HttpRequest> {
  const sent = new Headers(headers)
  if (!body) return { method: method.toUpperCase(), headers: sent, body: null, signal }
  if (typeof body === 'string' && sent.has('content-type'))
    return { method: method.toUpperCase(), headers: sent, body: Buffer.from(body), signal }
  const request = new Request('http://any.invalid', { method, headers, body })
  return { method: request.method, headers: request.headers, body: await request.bytes(), signal }
}

async function follow({ url, asked }: Asked, bounds: Bounds, left: number): Promise<Response> {
  const outcome = await withOutgoingCall(bounds.tenant, url.host, asked.signal, async () => {
    const message = await sendHttpRequest(bounds.tenant, url, asked, bounds)
    const next = left > 0 ? redirected({ url, asked }, message) : undefined
    if (next) message.destroy()
    return next ?? read(message, asked.method, bounds)
  })
  return outcome instanceof Response ? outcome : follow(outcome, bounds, left - 1)
}

/** What another origin may know of the question. */
const HARMLESS = ['accept', 'accept-language', 'user-agent']

/** The request that a redirection asks for (Fetch standard, HTTP-redirect fetch); undefined where it is an answer. */
function redirected({ url, asked }: Asked, { statusCode = 0, headers }: IncomingMessage): Asked | undefined {
  const { location } = headers
  const to = URL.parse(location ?? '', url.href)
  if (location === undefined || !to || ![301, 302, 303, 307, 308].includes(statusCode)) return
  const { method, signal } = asked
  const reads = ['GET', 'HEAD'].includes(method)
  const turnsToGet = statusCode === 303 ? !reads : statusCode < 303 && method === 'POST'
  if (to.origin === url.origin && !turnsToGet) return { url: to, asked }
  // What is sent was meant for the one who was asked, and for nobody else.
  if (!reads && !turnsToGet) return
  const kept = new Headers(asked.headers)
  for (const name of [...kept.keys()])
    if (to.origin === url.origin ? name.startsWith('content-') : !HARMLESS.includes(name)) kept.delete(name)
  return { url: to, asked: { signal, headers: kept, body: null, method: reads ? method : 'GET' } }
}

/** The whole answer. */
async function read(message: IncomingMessage, method: string, bounds: Bounds): Promise<Response> {
  const headers = headersOf(message)
  const { statusCode: status = 502 } = message
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  // They are about the bytes on the way.
  for (const name of ['content-encoding', 'content-length', 'transfer-encoding']) headers.delete(name)
  const empty = method === 'HEAD' || [204, 205, 304].includes(status)
  const bytes = await bytesOf(message, bounds)
  // What has no body must not get an empty one.
  return new Response(empty ? null : await decoded(bytes, encoding, bounds), { status, headers })
}

function bytesOf(message: IncomingMessage, { limit, cut = false }: Bounds): Promise<Buffer<ArrayBuffer>> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer<ArrayBuffer>>()
  const chunks: Buffer[] = []
  let size = 0
  const end = () => resolve(Buffer.concat(chunks).subarray(0, limit))
  message.on('data', (chunk: Buffer) => {
    size += chunk.byteLength
    chunks.push(chunk)
    if (size <= limit) return
    if (cut) end()
    else reject(new TooLarge(`The answer has more than ${limit} bytes.`))
    message.destroy()
  })
  message.on('end', end).on('error', reject)
  message.on('close', () => reject(new Error('The answer broke off.')))
  return promise
}

const decoders: Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
}

/** Nobody asks for a compressed answer, but some send one. What is cut can't be decoded. */
async function decoded(
  bytes: Buffer<ArrayBuffer>,
  encoding: string,
  { limit, cut }: Bounds,
): Promise<Uint8Array<ArrayBuffer>> {
  const decode = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
  if (!decode || !bytes.byteLength) return bytes
  try {
    return new Uint8Array(await decode(bytes, { maxOutputLength: limit }))
  } catch (error) {
    if (cut) return new Uint8Array()
    throw (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
      ? new TooLarge('The answer is too large.')
      : error
  }
}
