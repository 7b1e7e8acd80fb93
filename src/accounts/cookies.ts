import { and, eq, lt } from 'drizzle-orm'
import { config } from '../config'
import { iso, now } from '../core/clock'
import { Problem } from '../core/problem'
import { hashed } from '../core/secret'
import { hostOf, isSecure } from '../tenancy/caller'
import { type Tenant, tenantAt } from '../tenancy/tenants'
import { isLoopback } from './origins'
import { SESSION_TTL } from './sessions'
import { sessionKeys, sessions } from './tables'

const RENEWAL = 30 * 60_000 // ms; a cookie in use is renewed this often at most

/** How the names of our cookies begin. */
export const COOKIES = 'atoll_'

/** By TLS, only our own host can set a cookie of this prefix, for itself alone (RFC 6265bis §4.1.3.2). */
const HOST_PREFIX = '__Host-'

const nameOf = (request: Request, name: string) => (isSecure(request) ? HOST_PREFIX : '') + name

/** The value of a cookie of ours; undefined when none came, or several of that name, of which a neighbour may have set one. */
export function readCookie(request: Request, name: string): string | undefined {
  const start = `${nameOf(request, name)}=`
  const header = request.headers.get('cookie')
  if (!header?.includes(start)) return
  const found = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(start))
  return found.length === 1 ? found[0]!.slice(start.length) : undefined
}

/** A Set-Cookie that lasts `seconds`. Scripts can't read it, and other sites' forms don't send it. */
export function writeCookie(request: Request, name: string, value: string, seconds: number) {
  const secure = isSecure(request) ? '; Secure' : ''
  return `${nameOf(request, name)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`
}

const sessionName = ({ tenant }: Tenant) => `${COOKIES}${tenant}`

/** The session cookie that a request brings for this tenant. */
export const cookieOf = (request: Request, tenant: Tenant) => readCookie(request, sessionName(tenant))

/** The Set-Cookie of a session. */
export const setCookie = (request: Request, tenant: Tenant, value: string, seconds = SESSION_TTL / 1000) =>
  writeCookie(request, sessionName(tenant), value, seconds)

/**
 * Requires that a cookie comes to the tenant whose host was asked: a page of another tenant's, at its own host, could name ours
 * in the header. The caller's own machine is nobody's host.
 * @throws 403 COOKIE_OF_ANOTHER_HOST
 */
export async function requireOwnHost(request: Request, { tenant }: Tenant) {
  const named = config.ATOLL_TENANT_HEADER === 'on' && request.headers.get('tenant')
  const host = hostOf(request)
  if (!named || isLoopback(host)) return
  const there = await tenantAt(host)
  if (!there || there.tenant === tenant) return
  throw new Problem(
    403,
    'COOKIE_OF_ANOTHER_HOST',
    'A session cookie only counts at a host of its own tenant. Ask there, or send a token instead of the cookie.',
  )
}

export const clearCookie = (request: Request, tenant: Tenant) => setCookie(request, tenant, '', 0)

/** Lets a session that is in use go on: the cookie's thirty days begin anew. */
export async function keepCookie(
  request: Request,
  tenant: Tenant,
  cookie: string,
  known: { actor: { session?: string }; expires: number; replaced: boolean },
  headers: Record<string, unknown>,
) {
  const time = now()
  if (known.replaced || known.expires > time + SESSION_TTL - RENEWAL) return
  known.expires = time + SESSION_TTL
  const [hash, used, expires] = [hashed(cookie), iso(time), iso(known.expires)]
  await tenant.write(async (tx) => {
    await tx
      .update(sessionKeys)
      .set({ expires })
      .where(and(eq(sessionKeys.hash, hash), lt(sessionKeys.expires, expires)))
    await tx
      .update(sessions)
      .set({ used, expires })
      .where(eq(sessions._id, known.actor.session ?? ''))
  })
  headers['set-cookie'] = setCookie(request, tenant, cookie)
}
