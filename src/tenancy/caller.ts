import type { Server } from 'bun'
import { config } from '../config'

const proxied = config.ATOLL_TRUST_PROXY === 'on'
let server: (Pick<Server<undefined>, 'requestIP'> & Partial<Pick<Server<undefined>, 'timeout'>>) | undefined
const originals = new WeakMap<Request, Request>()

/** Whom to ask for the addresses of callers. */
export function listensOn(at: typeof server) {
  server = at
}

/** Remembers whose place a request takes that was made from another. */
export const standsFor = (request: Request, original: Request) => void originals.set(request, originalOf(original))

/** The request as it came in. */
export const originalOf = (request: Request) => originals.get(request) ?? request

/** The host and port that were asked for, in lower case. Whatever they are, no exception. */
export const authorityOf = ({ headers }: Request): string =>
  ((proxied && headers.get('x-forwarded-host')) || headers.get('host') || '').toLowerCase()

/** A name with a dot at its end is the same in full (RFC 1034, 3.1). */
export const withoutPort = (authority: string) => authority.replace(/\.?(:\d*)?$/, '')

export const hostOf = (request: Request) => withoutPort(authorityOf(request))

/** The caller's address; by a proxy's word only when it is trusted: the last entry, for callers can write the others. */
export function addressOf(request: Request): string {
  const forwarded = proxied && request.headers.get('x-forwarded-for')
  if (forwarded) return bare(forwarded.slice(forwarded.lastIndexOf(',') + 1).trim())
  return server?.requestIP(originalOf(request))?.address ?? ''
}

const FORWARDING = ['forwarded', 'x-forwarded-for', 'x-real-ip']
const LOOPBACK = ['127.0.0.1', '::1', '::ffff:127.0.0.1']

/** Whether a request was made on this machine, and not only passed on by a proxy here. */
export const isLocal = (request: Request) =>
  !FORWARDING.some((name) => request.headers.has(name)) && (!server || LOOPBACK.includes(addressOf(request)))

/** An address without the port that some proxies add. */
const bare = (address: string) => address.match(/^\[(.+)\](?::\d+)?$/)?.[1] ?? address.replace(/^([\d.]+):\d+$/, '$1')

const IDLE = 10 // s without any byte on a connection, after which it is cut
const LOOK = 2_500 // ms
const working = new Map<Request, { since: number; longer?: boolean }>()
const waiting = new WeakSet<Request>()
let watch: ReturnType<typeof setInterval> | undefined

/** Notes that all of a request has come in: from now on its connection is not cut for being quiet, until it is answered. */
export function startWork(request: Request) {
  const original = originalOf(request)
  if (working.has(original)) return
  working.set(original, { since: performance.now() })
  watch ??= setInterval(extendWork, LOOK).unref()
}

export function endWork(request: Request) {
  const work = working.get(request)
  if (!work) return
  working.delete(request)
  if (work.longer) server?.timeout?.(request, IDLE)
}

/** Only of what takes a while, for most are answered long before anything would be cut. */
function extendWork() {
  const before = performance.now() - LOOK
  for (const [request, work] of working) {
    if (work.longer || work.since > before) continue
    work.longer = true
    server?.timeout?.(request, 0)
  }
  if (working.size) return
  clearInterval(watch)
  watch = undefined
}

/** For work that goes on after the answer has begun: a connection on which nothing moves for ten seconds would be cut. */
export function waitsLong(request: Request) {
  const original = originalOf(request)
  working.delete(original)
  waiting.add(original)
  server?.timeout?.(original, 0)
}

/** For the end of that: who does not take the rest in ten seconds is cut off. */
export function waitsNoLonger(request: Request) {
  const original = originalOf(request)
  if (waiting.delete(original)) server?.timeout?.(original, IDLE)
}

/** Whether the browser speaks TLS, to us or to the proxy. */
export const isSecure = (request: Request) =>
  (proxied && request.headers.get('x-forwarded-proto') === 'https') || originalOf(request).url.startsWith('https:')

/** By whom a caller without an account is counted. */
export const networkOf = (request: Request) => network(addressOf(request))

/** One household has 2^64 addresses of version 6, so those count as one. */
function network(address: string) {
  if (!address.includes(':') || address.includes('.')) return address
  const [head = '', tail = ''] = address.split('::')
  const [front, back] = [head.split(':').filter(Boolean), tail.split(':').filter(Boolean)]
  const zeros = address.includes('::') ? Array(Math.max(0, 8 - front.length - back.length)).fill('0') : []
  return [...front, ...zeros, ...back].slice(0, 4).join(':')
}
