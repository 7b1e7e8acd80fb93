import { type Awaitable, andThen } from '../core/awaitable'
import { isOpenAiRequest } from '../core/openai-error'
import type { Tenant } from '../tenancy/tenants'
import {
  type Actor,
  authenticateApiToken,
  authenticateBearerToken,
  authenticateCookie,
  type CookieSession,
  isApiToken,
  readBearerToken,
} from './actors'
import { readSessionCookie, requireOwnHost } from './cookies'

/**
 * The result of authenticating a request: the actor, or the session cookie with its session, which is undefined when it
 * has ended.
 */
export type Authentication = { actor: Actor } | { cookie: string; session: CookieSession | undefined }

/**
 * Authenticates a request by its first credential: x-api-key, then Authorization, then the session cookie of the
 * tenant. Later credentials are ignored, even when the first is invalid. Cookies are neither renewed nor expired.
 * Returns undefined without a credential, and no promise for a cached one.
 * @throws 401 UNAUTHENTICATED for an invalid token, 403 COOKIE_OF_ANOTHER_HOST
 */
export function authenticate(
  request: Request,
  tenant: Tenant,
  { readsCookie = true } = {},
): Awaitable<Authentication | undefined> {
  const key = request.headers.get('x-api-key')
  if (key) return andThen(authenticateApiToken(tenant, key), toAuthentication)
  if (request.headers.get('authorization')) return andThen(authenticateAuthorization(request, tenant), toAuthentication)
  const cookie = readsCookie && readSessionCookie(request, tenant)
  if (!cookie) return
  return andThen(requireOwnHost(request, tenant), () =>
    andThen(authenticateCookie(tenant, cookie), (session) => ({ cookie, session })),
  )
}

const toAuthentication = (actor: Actor): Authentication => ({ actor })

/** OpenAI's clients send their key, here an API token, as a Bearer token. */
function authenticateAuthorization(request: Request, tenant: Tenant): Awaitable<Actor> {
  const token = readBearerToken(request)
  return isOpenAiRequest(request) && isApiToken(token)
    ? authenticateApiToken(tenant, token)
    : authenticateBearerToken(tenant, token)
}
