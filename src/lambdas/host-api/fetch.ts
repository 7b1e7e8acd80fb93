import { isPrivateNetworkAllowed } from '../../connections/url-policy'
import { HOP_BY_HOP_HEADERS } from '../../core/hop-by-hop'
import { fetchExternal } from '../../core/http-client'
import { badRequest, Problem } from '../../core/problem'
import { assertOutgoingAllowed } from '../../tenancy/outgoing-hold'
import type { HostCall } from './host-api'

const MAX_FETCHES = 50 // per run
const FETCH_TIMEOUT_MS = 10_000
const TIMEOUT_GRACE_MS = 1_000
const MAX_HEADERS = 100
const MAX_BODY_BYTES = 1 << 20 // of a request, and of a response
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
/** Headers of the connection, and headers that could lead to another server behind a proxy. */
const isForbiddenHeader = (name: string) =>
  HOP_BY_HOP_HEADERS.includes(name) || name === 'content-length' || name.startsWith('proxy-')

/** Calls another server for a lambda. Redirects are not followed. @throws 400, 409 OUTGOING_HELD, 429 TOO_MANY_FETCHES, 502, 503 */
export const fetchForLambda: HostCall = async (context, url, method, pairs, body) => {
  await assertOutgoingAllowed(context.ctx)
  if (++context.fetchCount > MAX_FETCHES)
    throw new Problem(429, 'TOO_MANY_FETCHES', `A run can make at most ${MAX_FETCHES} fetch calls.`)
  const address = typeof url === 'string' ? URL.parse(url) : null
  if (!address || !/^https?:$/.test(address.protocol) || address.username || address.password)
    return badRequest({ path: 'url', message: 'url must begin with https:// or http:// and contain no credentials.' })
  const upperMethod = String(method).toUpperCase()
  if (!METHODS.includes(upperMethod))
    badRequest({ path: 'method', message: `method must be one of ${METHODS.join(', ')}.` })
  if (typeof body === 'string' && body.length > MAX_BODY_BYTES)
    badRequest({ path: 'body', message: `The body can be at most ${MAX_BODY_BYTES >> 20} MiB.` })
  // When the run's deadline comes first, the run must time out, not the fetch. The end of the run aborts the fetch.
  const remainingMs = context.deadline - performance.now()
  const timeout =
    remainingMs > FETCH_TIMEOUT_MS + TIMEOUT_GRACE_MS ? FETCH_TIMEOUT_MS : FETCH_TIMEOUT_MS + TIMEOUT_GRACE_MS
  const response = await fetchExternal(
    address.href,
    {
      method: upperMethod,
      headers: parseHeaders(pairs),
      signal: context.signal,
      ...(typeof body === 'string' && body && { body }),
    },
    { tenant: context.ctx.tenant, timeout, limit: MAX_BODY_BYTES, privateNetwork: isPrivateNetworkAllowed() },
  )
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: Object.fromEntries(response.headers), body: bytes.toString('base64') }
}

function parseHeaders(pairs: unknown): Headers {
  const headers = new Headers({ 'user-agent': 'atoll' })
  const entries: unknown[] = Array.isArray(pairs) ? pairs : []
  if (entries.length > MAX_HEADERS)
    badRequest({ path: 'headers', message: `A request can have at most ${MAX_HEADERS} headers.` })
  for (const entry of entries) {
    if (!isPair(entry)) return badRequest({ path: 'headers', message: 'Each header must be a pair: [name, value].' })
    const [name, value] = entry
    if (isForbiddenHeader(name.toLowerCase()))
      badRequest({ path: 'headers', message: `A lambda cannot send the header "${name.slice(0, 100)}".` })
    try {
      headers.set(name, `${value}`)
    } catch {
      badRequest({ path: 'headers', message: `The header "${name.slice(0, 100)}" is invalid.` })
    }
  }
  return headers
}

const isPair = (entry: unknown): entry is [string, unknown] =>
  Array.isArray(entry) && entry.length === 2 && typeof entry[0] === 'string'
