import { config } from '../config'
import { isWebsiteOrigin } from '../tenancy/hosts'
import { findTenantByHost, resolveTenant, type Tenant } from '../tenancy/tenants'
import { getAllowedOrigins, isLoopbackHost, toOrigin } from './allowed-origins'

// What pages may send and read beyond what the Fetch standard always allows
// (https://fetch.spec.whatwg.org/#cors-protocol).
const ALLOWED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const ALLOWED_HEADERS = [
  ...['accept-version', 'authorization', 'content-type', 'idempotency-key', 'if-match', 'if-none-match'],
  ...['last-event-id', 'tenant', 'x-api-key', 'x-encrypted-id', 'x-impersonate-user', 'x-impersonate-workspace'],
  ...['x-request-id'],
].join(', ')
const EXPOSED_HEADERS = [
  ...['Allow', 'Content-Disposition', 'Deprecation', 'ETag', 'Idempotency-Replayed', 'Link', 'RateLimit-Limit'],
  ...[
    'RateLimit-Remaining',
    'RateLimit-Reset',
    'Retry-After',
    'X-API-Version',
    'X-Atoll-Version',
    'X-Ignored-Keys',
    'X-Limit',
    'X-Request-Id',
    'X-Total-Count',
    'X-Total-Count-Estimated',
    'WWW-Authenticate',
  ],
].join(', ')
const PREFLIGHT_MAX_AGE_S = '600' // s; the requests themselves are still checked

/** Returns whether a request is a CORS preflight. */
export const isPreflight = ({ method, headers }: Request) =>
  method === 'OPTIONS' && headers.has('origin') && headers.has('access-control-request-method')

/** What pages of an origin may do: read responses and, with `credentials`, also responses to requests with a cookie. */
type Grant = { credentials: boolean }

/** Returns the response to a preflight. It allows nothing to pages that could not read the response to the request. */
export async function answerPreflight(request: Request): Promise<Response> {
  const origin = request.headers.get('origin')!
  const headers = new Headers({ vary: 'Access-Control-Request-Headers, Origin' })
  const grant =
    (await isOwnWebsite(request, origin)) || (await mayNameTenant(request, origin))
      ? WEBSITE_GRANT
      : findLocalGrant(origin)
  if (grant) {
    setAllowedOrigin(headers, origin, grant)
    headers.set('access-control-allow-methods', ALLOWED_METHODS)
    headers.set('access-control-allow-headers', ALLOWED_HEADERS)
    headers.set('access-control-max-age', PREFLIGHT_MAX_AGE_S)
  }
  return new Response(null, { status: 204, headers })
}

/**
 * Lets the page read a response if its origin is a website of the tenant, or the local machine and the request has no
 * cookie. A response for all pages has its own headers.
 */
export async function addCorsHeaders(request: Request, origin: string, { headers }: Response) {
  if (headers.has('access-control-allow-origin')) return
  headers.append('vary', 'Origin')
  const local = request.headers.has('cookie') ? undefined : findLocalGrant(origin)
  const grant = (await isOwnWebsite(request, origin)) ? WEBSITE_GRANT : local
  if (!grant) return
  setAllowedOrigin(headers, origin, grant)
  headers.set('access-control-expose-headers', EXPOSED_HEADERS)
}

const WEBSITE_GRANT: Grant = { credentials: true }
const LOCAL_GRANT: Grant = { credentials: false }

function setAllowedOrigin(headers: Headers, origin: string, { credentials }: Grant) {
  headers.set('access-control-allow-origin', origin)
  if (credentials) headers.set('access-control-allow-credentials', 'true')
}

/** A page of the local machine is a program in development: what it reads, its developer can read, too. */
const findLocalGrant = (origin: string): Grant | undefined =>
  toOrigin(origin) === origin && isLoopbackHost(new URL(origin).hostname) ? LOCAL_GRANT : undefined

const isOwnWebsite = (request: Request, origin: string) => isWebsite(resolveTenant, request, origin)

/**
 * A preflight does not say which tenant the header `tenant` will name. It is allowed for a website of any tenant; the
 * request itself is checked by the tenant that it names.
 */
async function mayNameTenant({ headers }: Request, origin: string) {
  const requestedHeaders = headers.get('access-control-request-headers')?.toLowerCase().split(',') ?? []
  if (config.ATOLL_TENANT_HEADER !== 'on' || !requestedHeaders.some((name) => name.trim() === 'tenant')) return false
  return (await isWebsiteOrigin(origin)) || isWebsite(findTenantByHost, URL.parse(origin)?.hostname ?? '', origin)
}

async function isWebsite<Where>(
  find: (where: Where) => Tenant | undefined | Promise<Tenant | undefined>,
  where: Where,
  origin: string,
) {
  try {
    const tenant = await find(where)
    return !!tenant && (await getAllowedOrigins(tenant)).has(origin)
  } catch {
    return false // The response itself says that the tenant does not exist or is unavailable.
  }
}
