import { Problem } from '../core/problem'
import { resolveHostTenant, type Tenant } from '../tenancy/tenants'
import { type ActiveSite, getActiveSite, type ServedFile } from './active-site'
import { CACHE_REVALIDATE, respondWithFile, SITE_HEADERS } from './file-response'
import { findMissingPage, findPage } from './page'
import { decodePath } from './site-path'

const MISSING_PAGE = '<!doctype html><meta charset="utf-8"><title>Not found</title><p>This page does not exist.'

/**
 * Returns the response of the site at the host of a request, without a promise when everything is in memory; undefined
 * where there is no site. `target` is the path with the query.
 * @throws 403 TENANT_SUSPENDED, SERVICE_WORKER_AT_ROOT, 404 FILE_CONTENT_MISSING, 416, 503
 */
export function respondFromSite(request: Request, target: string) {
  const tenant = resolveHostTenant(request)
  return tenant instanceof Promise
    ? tenant.then((resolved) => resolved && respondFromSiteOf(resolved, request, target))
    : respondFromSiteOf(tenant, request, target)
}

function respondFromSiteOf(tenant: Tenant, request: Request, target: string) {
  const site = getActiveSite(tenant)
  return site instanceof Promise
    ? site.then((active) => respondWithPath(tenant.tenant, active, request, target))
    : respondWithPath(tenant.tenant, site, request, target)
}

function respondWithPath(
  tenant: string,
  site: ActiveSite,
  request: Request,
  target: string,
): Response | undefined | Promise<Response> {
  if (!site.files.size) return
  const queryStart = target.search(/[?#]/)
  const path = queryStart < 0 ? target : target.slice(0, queryStart)
  const decoded = decodePath(path)
  const page = decoded === undefined ? findMissingPage(site) : findPage(site, decoded, () => isNavigation(request))
  if (page.kind === 'redirect') return redirectTo(path, queryStart < 0 ? '' : target.slice(queryStart))
  if (!page.file) return respondWithText(MISSING_PAGE, request)
  if (page.kind === 'file') assertNoServiceWorkerAtRoot(request, page.file)
  return respondWithFile(tenant, site, page.file, request, page.kind === 'missing' ? 404 : 200)
}

const isNavigation = ({ headers }: Request) => !!headers.get('accept')?.includes('text/html')

/** A worker at the top would control the admin page, and what is typed there, as long as the browser keeps it. */
function assertNoServiceWorkerAtRoot({ headers }: Request, { path }: ServedFile) {
  if (path.includes('/') || headers.get('service-worker') !== 'script') return
  const message = `A service worker at the top of a site would control the admin page. Put ${path} into a folder.`
  throw new Problem(403, 'SERVICE_WORKER_AT_ROOT', message)
}

/** Adds or removes the slash at the end. Not for good: another deployment may have it the other way. */
function redirectTo(path: string, query: string): Response {
  const location = (path.endsWith('/') ? path.slice(0, -1) : `${path}/`) + query
  return new Response(null, {
    status: 307,
    headers: { ...SITE_HEADERS, location, 'cache-control': CACHE_REVALIDATE, 'content-length': '0' },
  })
}

function respondWithText(html: string, { method }: Request): Response {
  const headers = {
    ...SITE_HEADERS,
    'content-type': 'text/html; charset=utf-8',
    'cache-control': CACHE_REVALIDATE,
    'content-length': `${html.length}`,
  }
  return new Response(method === 'HEAD' ? null : html, { status: 404, headers })
}
