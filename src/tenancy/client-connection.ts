import type { Server } from 'bun'
import { config } from '../config'

const isProxyTrusted = config.ATOLL_TRUST_PROXY === 'on'
let server: (Pick<Server<undefined>, 'requestIP'> & Partial<Pick<Server<undefined>, 'timeout'>>) | undefined
const originalRequests = new WeakMap<Request, Request>()

/**
 * Sets the server that knows the addresses of clients. It also knows those of requests to the servers that it has
 * replaced.
 */
export function setServer(listeningServer: typeof server) {
  server = listeningServer
}

/** Links a derived request to the request that came in. */
export const linkOriginalRequest = (request: Request, original: Request) =>
  void originalRequests.set(request, originalRequest(original))

/** Returns the request that came in. */
export const originalRequest = (request: Request) => originalRequests.get(request) ?? request

/** Returns the requested host and port in lower case, whatever they are; it never throws. */
export const requestAuthority = ({ headers }: Request): string =>
  ((isProxyTrusted && headers.get('x-forwarded-host')) || headers.get('host') || '').toLowerCase()

/** Returns the host without the port and without a final dot, which does not change the name (RFC 1034, 3.1). */
export const stripPort = (authority: string) => authority.replace(/\.?(:\d*)?$/, '')

let [lastAuthority, lastHost] = ['', '']

/** Returns the requested host without the port; most requests ask for the host of the one before. */
export function requestHost(request: Request): string {
  const authority = requestAuthority(request)
  if (authority !== lastAuthority) [lastAuthority, lastHost] = [authority, stripPort(authority)]
  return lastHost
}

/**
 * Returns the client's IP address. The header of a proxy counts only when proxies are trusted, and then only its last
 * entry, because clients can write the others.
 */
export function clientIp(request: Request): string {
  const forwarded = isProxyTrusted && request.headers.get('x-forwarded-for')
  if (forwarded) return stripProxyPort(forwarded.slice(forwarded.lastIndexOf(',') + 1).trim())
  return server?.requestIP(originalRequest(request))?.address ?? ''
}

const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-real-ip']
const LOOPBACK_ADDRESSES = ['127.0.0.1', '::1', '::ffff:127.0.0.1']

/** Tells whether a request was made on this machine, and not just forwarded by a proxy on it. */
export const isLocalRequest = (request: Request) =>
  !FORWARDING_HEADERS.some((name) => request.headers.has(name)) &&
  (!server || LOOPBACK_ADDRESSES.includes(clientIp(request)))

/** Tells whether a proxy says that it has forwarded a request. */
export const isForwarded = ({ headers }: Request) =>
  ['forwarded', 'via', 'x-real-ip'].some((name) => headers.has(name)) ||
  headers.keys().some((name) => name.startsWith('x-forwarded-'))

/**
 * Tells whether a request came from this machine, or was forwarded from it by a trusted proxy. A proxy that is not
 * trusted may forward requests of anybody.
 */
export const isFromLoopback = (request: Request) =>
  isLocalRequest(request) || (isProxyTrusted && LOOPBACK_ADDRESSES.includes(clientIp(request)))

/** Returns an address without the port that some proxies add. */
const stripProxyPort = (address: string) =>
  address.match(/^\[(.+)\](?::\d+)?$/)?.[1] ?? address.replace(/^([\d.]+):\d+$/, '$1')

const IDLE_TIMEOUT_S = 10 // without a byte, until a connection is closed
const EXTEND_INTERVAL_MS = 2_500
const requestsInProgress = new Map<Request, { since: number; longer?: boolean }>()
const requestsWithoutTimeout = new WeakSet<Request>()
let extendTimer: ReturnType<typeof setInterval> | undefined

/**
 * Records that the head of a request has arrived: from now on its connection is not closed for being idle, until the
 * request is answered. Bun would close it in the midst of a slow body; whoever reads the body refuses a sender that is
 * too slow.
 */
export function startProcessing(request: Request) {
  const original = originalRequest(request)
  if (requestsInProgress.has(original)) return
  requestsInProgress.set(original, { since: performance.now() })
  extendTimer ??= setInterval(extendIdleTimeouts, EXTEND_INTERVAL_MS).unref()
}

export function endProcessing(request: Request) {
  const work = requestsInProgress.get(request)
  if (!work) return
  requestsInProgress.delete(request)
  if (work.longer) server?.timeout?.(request, IDLE_TIMEOUT_S)
}

/** Extends only the timeouts of slow requests, because most are answered long before a connection would be closed. */
function extendIdleTimeouts() {
  const before = performance.now() - EXTEND_INTERVAL_MS
  for (const [request, work] of requestsInProgress) {
    if (work.longer || work.since > before) continue
    work.longer = true
    server?.timeout?.(request, 0)
  }
  if (requestsInProgress.size) return
  clearInterval(extendTimer)
  extendTimer = undefined
}

/**
 * Disables the idle timeout for work that goes on after the response has begun: a connection without traffic for ten
 * seconds would be closed.
 */
export function disableIdleTimeout(request: Request) {
  const original = originalRequest(request)
  requestsInProgress.delete(original)
  requestsWithoutTimeout.add(original)
  server?.timeout?.(original, 0)
}

/** Restores the idle timeout: a client that does not read for ten seconds is disconnected. */
export function restoreIdleTimeout(request: Request) {
  const original = originalRequest(request)
  if (requestsWithoutTimeout.delete(original)) server?.timeout?.(original, IDLE_TIMEOUT_S)
}

/** Tells whether the client uses TLS, to the proxy where there is one, else to us. */
export const isHttps = (request: Request) => {
  const forwarded = isProxyTrusted && request.headers.get('x-forwarded-proto')
  return forwarded ? forwarded === 'https' : originalRequest(request).url.startsWith('https:')
}

/** Returns the network by which requests of a client without an account are counted. */
export const clientNetwork = (request: Request) => toNetwork(clientIp(request))

/**
 * Returns the networks that hold a /64 network, with how many times its limits they have: whoever gets a /56 or a /48
 * has 256 or 65,536 of them.
 */
export function widerNetworks(network: string): { network: string; factor: number }[] {
  const [a, b, c, d, ...others] = network.split(':')
  if (d === undefined || others.length) return []
  return [
    { network: `${a}:${b}:${c}:${d.padStart(4, '0').slice(0, 2)}/56`, factor: 4 },
    { network: `${a}:${b}:${c}/48`, factor: 16 },
  ]
}

/**
 * Returns the /64 network of an IPv6 address, because one household has 2^64 addresses; IPv4 addresses are unchanged.
 */
function toNetwork(address: string) {
  if (!address.includes(':') || address.includes('.')) return address
  const [head = '', tail = ''] = address.split('::')
  const [front, back] = [head.split(':').filter(Boolean), tail.split(':').filter(Boolean)]
  const zeros = address.includes('::') ? Array(Math.max(0, 8 - front.length - back.length)).fill('0') : []
  return [...front, ...zeros, ...back].slice(0, 4).join(':')
}
