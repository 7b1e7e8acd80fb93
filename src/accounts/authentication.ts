import type { Tenant } from '../tenancy/tenants'
import {
  type Actor,
  authenticateApiToken,
  authenticateBearerToken,
  authenticateCookie,
  type CookieSession,
  readBearerToken,
} from './actors'
import { readSessionCookie, requireOwnHost } from './cookies'

/** What the first credential of a request proves: its actor, or the session of its cookie, which may have ended. */
export type Authentication = { actor: Actor } | { cookie: string; session: CookieSession | undefined }

/**
 * Judges the first credential of a request: x-api-key, then Authorization, then the session cookie of the tenant. Later
 * credentials count for nothing, even when the first is invalid. Renews and expires no cookie; undefined without a credential.
 * @throws 401 for an invalid token, 403 COOKIE_OF_ANOTHER_HOST
 */
export async function authenticate(
  request: Request,
  tenant: Tenant,
  { readsCookie = true } = {},
): Promise<Authentication | undefined> {
  const key = request.headers.get('x-api-key')
  if (key) return { actor: await authenticateApiToken(tenant, key) }
  if (request.headers.get('authorization'))
    return { actor: await authenticateBearerToken(tenant, readBearerToken(request)) }
  const cookie = readsCookie && readSessionCookie(request, tenant)
  if (!cookie) return
  await requireOwnHost(request, tenant)
  return { cookie, session: await authenticateCookie(tenant, cookie) }
}
