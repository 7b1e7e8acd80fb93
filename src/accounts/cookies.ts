import { and, eq, lt } from 'drizzle-orm'
import { iso, now } from '../core/clock'
import { hashed } from '../core/secret'
import { isSecure } from '../tenancy/caller'
import type { Tenant } from '../tenancy/tenants'
import { SESSION_TTL } from './sessions'
import { sessionKeys, sessions } from './tables'

const RENEWAL = 30 * 60_000 // ms; a cookie in use is renewed this often at most

/** How the names of our cookies begin. */
export const COOKIES = 'atoll_'
const nameOf = ({ tenant }: Tenant) => `${COOKIES}${tenant}`

/** The session cookie that a request brings for this tenant. */
export function cookieOf(request: Request, tenant: Tenant): string | undefined {
  const start = `${nameOf(tenant)}=`
  const header = request.headers.get('cookie')
  if (!header?.includes(start)) return
  return header
    .split(';')
    .map((pair) => pair.trim())
    .find((pair) => pair.startsWith(start))
    ?.slice(start.length)
}

/** A Set-Cookie that lasts `seconds`. Scripts can't read it, and other sites' forms don't send it. */
export function setCookie(request: Request, tenant: Tenant, value: string, seconds = SESSION_TTL / 1000) {
  const secure = isSecure(request) ? '; Secure' : ''
  return `${nameOf(tenant)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`
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
