import type { Server } from 'bun'
import { config } from '../config'

const proxied = config.ATOLL_TRUST_PROXY === 'on'
let server: Pick<Server<undefined>, 'requestIP'> | undefined
const originals = new WeakMap<Request, Request>()

/** Whom to ask for the addresses of callers. */
export function listensOn(at: typeof server) {
  server = at
}

/** Remembers whose place a request takes that was made from another. */
export const standsFor = (request: Request, original: Request) => void originals.set(request, original)

/** The host and port that were asked for, in lower case. Whatever they are, no exception. */
export const authorityOf = ({ headers }: Request): string =>
  ((proxied && headers.get('x-forwarded-host')) || headers.get('host') || '').toLowerCase()

export const hostOf = (request: Request) => authorityOf(request).replace(/:\d*$/, '')

/** The caller's address; by a proxy's word only when it is trusted: the last entry, for callers can write the others. */
export function addressOf(request: Request): string {
  const forwarded = proxied && request.headers.get('x-forwarded-for')
  if (forwarded) return forwarded.slice(forwarded.lastIndexOf(',') + 1).trim()
  return server?.requestIP(originals.get(request) ?? request)?.address ?? ''
}

/** Whether the browser speaks TLS, to us or to the proxy. */
export const isSecure = (request: Request) =>
  (proxied && request.headers.get('x-forwarded-proto') === 'https') ||
  (originals.get(request) ?? request).url.startsWith('https:')
