import type { Server } from 'bun'
import { config } from '../config'

const isProxyTrusted = config.ATOLL_TRUST_PROXY === 'on'
let server: (Pick<Server<undefined>, 'requestIP'> & Partial<Pick<Server<undefined>, 'timeout'>>) | undefined
const originalRequests = new WeakMap<Request, Request>()

/** Whom to ask for the addresses of callers. */
export function setServer(listeningServer: typeof server) {
  server = listeningServer
}

/** Remembers whose place a request takes that was made from another. */
export const linkOriginalRequest = (request: Request, original: Request) =>
  void originalRequests.set(request, originalRequest(original))

/** The request as it came in. */
export const originalRequest = (request: Request) => originalRequests.get(request) ?? request

/** The host and port that were asked for, in lower case. Whatever they are, no exception. */
export const requestAuthority = ({ headers }: Request): string =>
  ((isProxyTrusted && headers.get('x-forwarded-host')) || headers.get('host') || '').toLowerCase()

/** A name with a dot at its end is the same in full (RFC 1034, 3.1). */
export const stripPort = (authority: string) => authority.replace(/\.?(:\d*)?$/, '')

export const requestHost = (request: Request) => stripPort(requestAuthority(request))

/** The caller's address; by a proxy's word only when it is trusted: the last entry, for callers can write the others. */
export function clientIp(request: Request): string {
  const forwarded = isProxyTrusted && request.headers.get('x-forwarded-for')
  if (forwarded) return stripProxyPort(forwarded.slice(forwarded.lastIndexOf(',') + 1).trim())
  return server?.requestIP(originalRequest(request))?.address ?? ''
}

const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-real-ip']
const LOOPBACK_ADDRESSES = ['127.0.0.1', '::1', '::ffff:127.0.0.1']

/** Whether a request was made on this machine, and not only passed on by a proxy here. */
export const isLocalRequest = (request: Request) =>
  !FORWARDING_HEADERS.some((name) => request.headers.has(name)) &&
  (!server || LOOPBACK_ADDRESSES.includes(clientIp(request)))

/** An address without the port that some proxies add. */
const stripProxyPort = (address: string) =>
  address.match(/^\[(.+)\](?::\d+)?$/)?.[1] ?? address.replace(/^([\d.]+):\d+$/, '$1')

const IDLE_TIMEOUT_S = 10 // s without any byte on a connection, after which it is cut
const EXTEND_INTERVAL_MS = 2_500 // ms
const requestsInProgress = new Map<Request, { since: number; longer?: boolean }>()
const requestsWithoutTimeout = new WeakSet<Request>()
let extendTimer: ReturnType<typeof setInterval> | undefined

/** Notes that all of a request has come in: from now on its connection is not cut for being quiet, until it is answered. */
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

/** Only of what takes a while, for most are answered long before anything would be cut. */
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

/** For work that goes on after the answer has begun: a connection on which nothing moves for ten seconds would be cut. */
export function disableIdleTimeout(request: Request) {
  const original = originalRequest(request)
  requestsInProgress.delete(original)
  requestsWithoutTimeout.add(original)
  server?.timeout?.(original, 0)
}

/** For the end of that: who does not take the rest in ten seconds is cut off. */
export function restoreIdleTimeout(request: Request) {
  const original = originalRequest(request)
  if (requestsWithoutTimeout.delete(original)) server?.timeout?.(original, IDLE_TIMEOUT_S)
}

/** Whether the browser speaks TLS, to us or to the proxy. */
export const isHttps = (request: Request) =>
  (isProxyTrusted && request.headers.get('x-forwarded-proto') === 'https') ||
  originalRequest(request).url.startsWith('https:')

/** By whom a caller without an account is counted. */
export const clientNetwork = (request: Request) => toNetwork(clientIp(request))

/** One household has 2^64 addresses of version 6, so those count as one. */
function toNetwork(address: string) {
  if (!address.includes(':') || address.includes('.')) return address
  const [head = '', tail = ''] = address.split('::')
  const [front, back] = [head.split(':').filter(Boolean), tail.split(':').filter(Boolean)]
  const zeros = address.includes('::') ? Array(Math.max(0, 8 - front.length - back.length)).fill('0') : []
  return [...front, ...zeros, ...back].slice(0, 4).join(':')
}
