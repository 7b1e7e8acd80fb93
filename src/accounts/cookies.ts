import { and, eq, isNull, lt } from 'drizzle-orm'
import { config } from '../config'
import { type Awaitable, andThen } from '../core/awaitable'
import { now, toIsoString } from '../core/clock'
import { sha256 } from '../core/crypto'
import { Problem } from '../core/problem'
import { isLoopbackHost } from '../http/allowed-origins'
import { isHttps, originalRequest, requestHost } from '../tenancy/client-connection'
import { findTenantByHost, type Tenant } from '../tenancy/tenants'
import type { CookieSession } from './actors'
import { SESSION_TTL_MS } from './sessions'
import { sessionKeys, sessions } from './tables'

const COOKIE_RENEWAL_INTERVAL_MS = 30 * 60_000 // ms; a cookie in use is renewed at most this often

/** The prefix of the names of all cookies that this server sets. */
export const COOKIE_PREFIX = 'atoll_'

/** Over TLS, only the host itself can set a cookie with this prefix, and only for itself (RFC 6265bis §4.1.3.2). */
const HOST_PREFIX = '__Host-'

const toCookieName = (request: Request, name: string) => (isHttps(request) ? HOST_PREFIX : '') + name

/**
 * Returns the value of a cookie. Returns undefined when there is none or when several have this name, since a
 * neighbouring host may have set one of them.
 */
export function readCookie(request: Request, name: string): string | undefined {
  const start = `${toCookieName(request, name)}=`
  const header = request.headers.get('cookie')
  if (!header?.includes(start)) return
  const matching = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(start))
  return matching.length === 1 ? matching[0]!.slice(start.length) : undefined
}

/**
 * Returns a Set-Cookie header that lasts `seconds`. Scripts cannot read the cookie, and forms of other sites do not
 * send it.
 */
export function serializeCookie(request: Request, name: string, value: string, seconds: number) {
  const secure = isHttps(request) ? '; Secure' : ''
  return `${toCookieName(request, name)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`
}

const toSessionCookieName = ({ tenant }: Tenant) => `${COOKIE_PREFIX}${tenant}`

/** Returns the session cookie of a request for this tenant, or undefined. */
export const readSessionCookie = (request: Request, tenant: Tenant) => readCookie(request, toSessionCookieName(tenant))

/** Returns the Set-Cookie header of a session. */
export const serializeSessionCookie = (
  request: Request,
  tenant: Tenant,
  value: string,
  seconds = SESSION_TTL_MS / 1000,
) => serializeCookie(request, toSessionCookieName(tenant), value, seconds)

/**
 * Requires that a cookie is sent to a host of its own tenant: a page on the host of another tenant could name this
 * tenant in the header. A loopback host belongs to no tenant, so it is always allowed.
 * @throws 403 COOKIE_OF_ANOTHER_HOST
 */
export function requireOwnHost(request: Request, { tenant }: Tenant): Awaitable<void> {
  const namedTenant = config.ATOLL_TENANT_HEADER === 'on' && request.headers.get('tenant')
  const host = requestHost(request)
  if (!namedTenant || isLoopbackHost(host)) return
  return andThen(findTenantByHost(host), (hostTenant) => {
    if (!hostTenant || hostTenant.tenant === tenant) return
    throw new Problem(
      403,
      'COOKIE_OF_ANOTHER_HOST',
      'A session cookie is only valid at a host of its own tenant. Send the request there, or use a token instead of the cookie.',
    )
  })
}

/** Returns the Set-Cookie header that removes the session cookie. */
export const serializeExpiredSessionCookie = (request: Request, tenant: Tenant) =>
  serializeSessionCookie(request, tenant, '', 0)

/** The session cookies that the guard has renewed or expired, until they are added to the responses. */
const renewedCookies = new WeakMap<Request, string>()

/**
 * Adds the session cookie that the guard has renewed or expired to the response, unless it sets this cookie itself. The
 * cookie is not part of what a route answers, so a stored answer never contains it and a replayed one still gets it.
 */
export function addRenewedCookie(request: Request, { headers }: Response) {
  const cookie = renewedCookies.get(originalRequest(request))
  if (!cookie) return
  const nameEnd = cookie.indexOf('=') + 1
  if (!headers.getSetCookie().some((other) => other.startsWith(cookie.slice(0, nameEnd))))
    headers.append('set-cookie', cookie)
}

/** Removes the session cookie of a request from the browser by the response. */
export const expireSessionCookie = (request: Request, tenant: Tenant) =>
  void renewedCookies.set(originalRequest(request), serializeExpiredSessionCookie(request, tenant))

/** Extends the cookie of an active session by thirty days, unless this was done recently. */
export function extendSessionCookie(
  request: Request,
  tenant: Tenant,
  cookie: string,
  session: CookieSession,
): Awaitable<void> {
  const time = now()
  if (session.replaced || session.expires > time + SESSION_TTL_MS - COOKIE_RENEWAL_INTERVAL_MS) return
  return renewSessionCookie(request, tenant, cookie, session, time)
}

async function renewSessionCookie(
  request: Request,
  tenant: Tenant,
  cookie: string,
  session: CookieSession,
  time: number,
) {
  const before = session.expires
  session.expires = time + SESSION_TTL_MS
  const [hash, used, expires] = [sha256(cookie), toIsoString(time), toIsoString(session.expires)]
  // Another server may have replaced the cookie meanwhile, and a replaced one must not live longer.
  const isCurrent = and(eq(sessionKeys.hash, hash), isNull(sessionKeys.spent), lt(sessionKeys.expires, expires))
  try {
    const isExtended = await tenant.write(async (tx) => {
      if (!(await tx.update(sessionKeys).set({ expires }).where(isCurrent).returning().get())) return false
      await tx
        .update(sessions)
        .set({ used, expires })
        .where(eq(sessions._id, session.actor.session ?? ''))
      return true
    })
    if (isExtended) renewedCookies.set(originalRequest(request), serializeSessionCookie(request, tenant, cookie))
  } catch {
    // The session is still valid, so a full disk or a busy database must not reject a read. The next request tries again.
    session.expires = before
  }
}
