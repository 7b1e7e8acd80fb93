import { config } from '../config'
import { type Tenant, tenantAt, tenantOf } from '../tenancy/tenants'
import { isLoopback, originsOf } from './origins'

// What pages may send and see, beyond what the Fetch standard lets them anyway (https://fetch.spec.whatwg.org/#cors-protocol).
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const SENT = [
  ...['accept-version', 'authorization', 'content-type', 'idempotency-key', 'if-match', 'if-none-match'],
  ...['last-event-id', 'tenant', 'x-api-key', 'x-encrypted-id', 'x-impersonate-user', 'x-impersonate-workspace'],
  ...['x-request-id'],
].join(', ')
const SEEN = [
  ...['Allow', 'Content-Disposition', 'Deprecation', 'ETag', 'Idempotency-Replayed', 'Link', 'RateLimit-Limit'],
  ...[
    'RateLimit-Remaining',
    'RateLimit-Reset',
    'Retry-After',
    'X-API-Version',
    'X-Ignored-Keys',
    'X-Limit',
    'X-Request-Id',
    'X-Total-Count',
  ],
].join(', ')
const REMEMBERED = '600' // s; what a page then asks is judged each time

/** Whether a browser asks on behalf of a page whether that may ask something. */
export const isPreflight = ({ method, headers }: Request) =>
  method === 'OPTIONS' && headers.has('origin') && headers.has('access-control-request-method')

/** Tells a browser what pages of its origin may send; nothing, when that is no website of the tenant's. */
export async function preflight(request: Request): Promise<Response> {
  const origin = request.headers.get('origin')!
  const headers = new Headers({ vary: 'Access-Control-Request-Headers' })
  if ((await mayRead(request, origin)) || (await mayName(request, origin))) {
    headers.append('vary', 'Origin')
    allow(headers, origin)
    headers.set('access-control-allow-methods', METHODS)
    headers.set('access-control-allow-headers', SENT)
    headers.set('access-control-max-age', REMEMBERED)
  }
  return new Response(null, { status: 204, headers })
}

/** Lets the page read an answer, if its origin is a website of the tenant's. What is for all pages says so by itself. */
export async function share(request: Request, origin: string, { headers }: Response) {
  if (headers.has('access-control-allow-origin')) return
  headers.append('vary', 'Origin')
  if (!(await mayRead(request, origin))) return
  allow(headers, origin)
  headers.set('access-control-expose-headers', SEEN)
}

function allow(headers: Headers, origin: string) {
  headers.set('access-control-allow-origin', origin)
  headers.set('access-control-allow-credentials', 'true')
}

const mayRead = async (request: Request, origin: string) => isWebsite(tenantOf, request, origin)

/**
 * A preflight can't say which tenant the header `tenant` will name. It is let through for any tenant's website, and for
 * pages of the caller's own machine; the request itself is judged by the tenant that it names.
 */
async function mayName({ headers }: Request, origin: string) {
  const asked = headers.get('access-control-request-headers')?.toLowerCase().split(',') ?? []
  if (config.ATOLL_TENANT_HEADER !== 'on' || !asked.some((name) => name.trim() === 'tenant')) return false
  const host = URL.parse(origin)?.hostname ?? ''
  return isLoopback(host) || isWebsite(tenantAt, host, origin)
}

async function isWebsite<Where>(
  find: (where: Where) => Tenant | undefined | Promise<Tenant | undefined>,
  where: Where,
  origin: string,
) {
  try {
    const tenant = await find(where)
    return !!tenant && (await originsOf(tenant)).has(origin)
  } catch {
    return false // Who asks no tenant, or one that can't be asked now, is told so by the answer itself.
  }
}
