import { isIP } from 'node:net'
import { addressesOf, hostIn, type Reach, Refused } from './addresses'
import { Problem } from './problem'

/** What another server may cost us, and who it may be. */
export type Bounds = Reach & {
  /** ms until all of its answer is there. */
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

type Asked = { url: URL; init: RequestInit }

/**
 * Asks another server, which some tenant has named, and reads its answer whole. Into the network of this installation
 * nobody gets by it: unless that is allowed, hosts need a public address, and the connection is made to the very
 * address that was looked at. Redirections are looked at as addresses are.
 * @throws 502 OUTSIDE_UNREACHABLE, which tells nothing of what is there
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
    const response = await follow({ url: new URL(url), init: { ...init, signal } }, bounds, bounds.redirects ?? 0)
    const body = await bounded(response, bounds)
    const headers = new Headers(response.headers)
    // They are about the bytes on the way.
    for (const name of ['content-encoding', 'content-length', 'transfer-encoding']) headers.delete(name)
    return new Response(body, { status: response.status, headers })
  } catch (cause) {
    throw new Unreachable(late ? 'timeout' : whyOf(cause), cause)
  } finally {
    clearTimeout(timer)
    init.signal?.removeEventListener('abort', give)
  }
}

const whyOf = (cause: unknown): Why =>
  cause instanceof Refused ? 'refused' : cause instanceof TooLarge ? 'too-large' : 'unreachable'

async function follow(asked: Asked, bounds: Bounds, left: number): Promise<Response> {
  const response = await ask(asked, bounds)
  const next = left > 0 ? redirected(asked, response) : undefined
  if (!next) return response
  await response.body?.cancel()
  return follow(next, bounds, left - 1)
}

/** What another origin may know of the question. */
const HARMLESS = ['accept', 'accept-language', 'user-agent']

/** The question that a redirection asks for (Fetch standard, HTTP-redirect fetch); undefined where it is an answer. */
function redirected({ url, init }: Asked, { status, headers }: Response): Asked | undefined {
  const to = URL.parse(headers.get('location') ?? '', url.href)
  if (!headers.has('location') || !to || ![301, 302, 303, 307, 308].includes(status)) return
  const { method = 'GET', body, signal } = init
  const read = ['GET', 'HEAD'].includes(method)
  const turnsToGet = status === 303 ? !read : status < 303 && method === 'POST'
  if (to.origin === url.origin && !turnsToGet) return body instanceof ReadableStream ? undefined : { url: to, init }
  // What is sent was meant for the one who was asked, and for nobody else.
  if (!read && !turnsToGet) return
  const kept = new Headers(init.headers)
  for (const name of [...kept.keys()])
    if (to.origin === url.origin ? name.startsWith('content-') : !HARMLESS.includes(name)) kept.delete(name)
  return { url: to, init: { signal, headers: kept, method: read ? method : 'GET' } }
}

/** Tries one address after the other, until one can be connected to. */
async function ask({ url, init }: Asked, bounds: Bounds): Promise<Response> {
  const addresses = await unless(init.signal, addressesOf(url, bounds))
  const host = hostIn(url)
  const headers = new Headers(init.headers)
  headers.set('host', url.port ? `${nameOf(host)}:${url.port}` : nameOf(host))
  const tls = { ...(bounds.ca && { ca: bounds.ca }), ...(!isIP(host) && { serverName: host }) }
  const again = !(init.body instanceof ReadableStream)
  for (const [n, address] of addresses.entries()) {
    const at = new URL(url)
    at.hostname = nameOf(address)
    try {
      return await fetch(at, { ...init, headers, redirect: 'manual', ...(url.protocol === 'https:' && { tls }) })
    } catch (error) {
      const { code = '' } = error as { code?: string }
      if (!again || n === addresses.length - 1 || !NOT_THERE.test(code)) throw error
    }
  }
  throw new Refused(`${host} has no address.`)
}

const NOT_THERE = /^(ConnectionRefused|FailedToOpenSocket|ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|EADDRNOTAVAIL)$/
const nameOf = (host: string) => (isIP(host) === 6 ? `[${host}]` : host)

/** Looking for a name can't be broken off, but need not be waited for. */
function unless<T>(signal: AbortSignal | null | undefined, work: Promise<T>): Promise<T> {
  if (!signal) return work
  const { promise, reject } = Promise.withResolvers<never>()
  const give = () => reject(signal.reason)
  if (signal.aborted) give()
  signal.addEventListener('abort', give, { once: true })
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', give))
}

async function bounded(response: Response, { limit, cut = false }: Bounds) {
  // What has no body must not get an empty one.
  if (!response.body || [204, 205, 304].includes(response.status)) return null
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength
    if (size > limit && !cut) throw new TooLarge(`The answer has more than ${limit} bytes.`)
    chunks.push(chunk)
    if (size > limit) break
  }
  return Buffer.concat(chunks).subarray(0, limit)
}
