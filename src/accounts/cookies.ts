import { and, eq, lt } from 'drizzle-orm'
import { config } from '../config'
import { now, toIsoString } from '../core/clock'
import { sha256 } from '../core/crypto'
import { Problem } from '../core/problem'
import { isLoopbackHost } from '../http/allowed-origins'
import { isHttps, requestHost } from '../tenancy/client-connection'
import { findTenantByHost, type Tenant } from '../tenancy/tenants'
import type { CookieSession } from './actors'
import { SESSION_TTL_MS } from './sessions'
import { sessionKeys, sessions } from './tables'

const COOKIE_RENEWAL_INTERVAL_MS = 30 * 60_000 // ms; a cookie in use is renewed this often at most

/** How the names of our cookies begin. */
export const COOKIE_PREFIX = 'atoll_'

/** By TLS, only our own host can set a cookie of this prefix, for itself alone (RFC 6265bis §4.1.3.2). */
const HOST_PREFIX = '__Host-'

const toCookieName = (request: Request, name: string) => (isHttps(request) ? HOST_PREFIX : '') + name

/** The value of a cookie of ours; undefined when none came, or several of that name, of which a neighbour may have set one. */
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

/** A Set-Cookie that lasts `seconds`. Scripts can't read it, and other sites' forms don't send it. */
export function serializeCookie(request: Request, name: string, value: string, seconds: number) {
  const secure = isHttps(request) ? '; Secure' : ''
  return `${toCookieName(request, name)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`
}

const toSessionCookieName = ({ tenant }: Tenant) => `${COOKIE_PREFIX}${tenant}`

/** The session cookie that a request brings for this tenant. */
export const readSessionCookie = (request: Request, tenant: Tenant) => readCookie(request, toSessionCookieName(tenant))

/** The Set-Cookie of a session. */
export const serializeSessionCookie = (
  request: Request,
  tenant: Tenant,
  value: string,
  seconds = SESSION_TTL_MS / 1000,
) => serializeCookie(request, toSessionCookieName(tenant), value, seconds)

/**
 * Requires that a cookie comes to the tenant whose host was asked: a page of another tenant's, at its own host, could name ours
 * in the header. The caller's own machine is nobody's host.
 * @throws 403 COOKIE_OF_ANOTHER_HOST
 */
export async function requireOwnHost(request: Request, { tenant }: Tenant) {
  const namedTenant = config.ATOLL_TENANT_HEADER === 'on' && request.headers.get('tenant')
  const host = requestHost(request)
  if (!namedTenant || isLoopbackHost(host)) return
  const hostTenant = await findTenantByHost(host)
  if (!hostTenant || hostTenant.tenant === tenant) return
  throw new Problem(
    403,
    'COOKIE_OF_ANOTHER_HOST',
    'A session cookie is only valid at a host of its own tenant. Send the request there, or use a token instead of the cookie.',
  )
}

export const serializeExpiredSessionCookie = (request: Request, tenant: Tenant) =>
  serializeSessionCookie(request, tenant, '', 0)

/** Lets a session that is in use go on: the cookie's thirty days begin anew. */
export async function extendSessionCookie(
  request: Request,
  tenant: Tenant,
  cookie: string,
  session: CookieSession,
  headers: Record<string, unknown>,
) {
  const time = now()
  if (session.replaced || session.expires > time + SESSION_TTL_MS - COOKIE_RENEWAL_INTERVAL_MS) return
  session.expires = time + SESSION_TTL_MS
  const [hash, used, expires] = [sha256(cookie), toIsoString(time), toIsoString(session.expires)]
  await tenant.write(async (tx) => {
    await tx
      .update(sessionKeys)
      .set({ expires })
      .where(and(eq(sessionKeys.hash, hash), lt(sessionKeys.expires, expires)))
    await tx
      .update(sessions)
      .set({ used, expires })
      .where(eq(sessions._id, session.actor.session ?? ''))
  })
  headers['set-cookie'] = serializeSessionCookie(request, tenant, cookie)
}
