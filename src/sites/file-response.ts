import type { Content } from '../backups/contents/content-store'
import { now } from '../core/clock'
import { hasCurrent, parseRange, toHttpDate } from '../core/preconditions'
import { Problem } from '../core/problem'
import { missingContent } from '../tenancy/servers'
import type { ActiveSite, ServedFile } from './active-site'
import { readContent } from './content-cache'
import { chooseEncoding } from './encodings'
import type { SiteEncoding, StoredContent } from './tables'

/** A site may run scripts and call the API of its origin. Other origins cannot show its pages in a frame. */
export const SITE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'content-security-policy': "frame-ancestors 'self'",
}
export const CACHE_REVALIDATE = 'public, no-cache'
const CACHE_IMMUTABLE = 'public, max-age=31536000, immutable'

/** A file in one of its encodings, and the headers with which it is served. */
type Representation = { content: StoredContent; etag: string; headers: Headers }
type Range = [number, number]

/**
 * Returns the response with a file, or the part of it that `Range` names, in an encoding that the client accepts; without
 * a promise when it is in memory.
 * @throws 404 FILE_CONTENT_MISSING, 412 VERSION_MISMATCH, 416 RANGE_NOT_SATISFIABLE, 503 FILE_STORE_UNAVAILABLE
 */
export function respondWithFile(
  tenant: string,
  site: ActiveSite,
  file: ServedFile,
  request: Request,
  status: 200 | 404,
): Response | Promise<Response> {
  // A part of an encoded file is of no use without its beginning.
  const hasRange = status === 200 && request.method === 'GET' && request.headers.has('range')
  const encoding =
    hasRange || !file.encodings ? undefined : chooseEncoding(file, request.headers.get('accept-encoding'))
  const { content, etag, headers } = represent(site, file, encoding)
  const validators = { etag, modified: site.modified }
  if (status === 200 && hasCurrent(request, validators))
    return withHeaders(new Response(null, { status: 304, headers }), { 'content-length': undefined })
  const range = hasRange ? parseRange(request, content.size, validators) : undefined
  if (range === 'unsatisfiable') throw rangeNotSatisfiable(content.size)
  if (request.method === 'HEAD') return new Response(null, { status, headers })
  const respond = (body: Uint8Array<ArrayBuffer> | Content | undefined) =>
    body ? toResponse(body, content, headers, status, range) : rejectMissing()
  const body = readContent(tenant, site.deployment, content)
  return body instanceof Promise ? body.then(respond) : respond(body)
}

const rejectMissing = async (): Promise<never> => {
  throw await missingContent('Deploy the site again.')
}

function toResponse(
  body: Uint8Array<ArrayBuffer> | Content,
  { size }: StoredContent,
  headers: Headers,
  status: number,
  range: Range | undefined,
): Response {
  if (!range) return new Response(toBody(body), { status, headers })
  const [start, end] = range
  return withHeaders(new Response(toBody(body.slice(start, end)), { status: 206, headers }), {
    'content-length': `${end - start}`,
    'content-range': `bytes ${start}-${end - 1}/${size}`,
  })
}

const toBody = (body: Uint8Array<ArrayBuffer> | Content) =>
  body instanceof Blob || body instanceof Uint8Array ? body : body.stream()

function withHeaders(response: Response, changes: Record<string, string | undefined>): Response {
  for (const [name, value] of Object.entries(changes))
    if (value === undefined) response.headers.delete(name)
    else response.headers.set(name, value)
  return response
}

/** Representations of files that were served. They are kept as long as their deployment is cached. */
const representations = new WeakMap<ServedFile, Map<SiteEncoding | undefined, Representation>>()

function represent(site: ActiveSite, file: ServedFile, encoding: SiteEncoding | undefined): Representation {
  let ofFile = representations.get(file)
  const existing = ofFile?.get(encoding)
  if (existing) return existing
  const content = (encoding && file.encodings?.[encoding]) ?? file
  const etag = `"${content.sha256.slice(0, 32)}"`
  const vary = [file.encodings && 'Accept-Encoding', site.spa && file.path.endsWith('.html') && 'Accept']
  const headers = new Headers({
    ...SITE_HEADERS,
    'content-type': file.type,
    'content-length': `${content.size}`,
    'cache-control': file.isImmutable ? CACHE_IMMUTABLE : CACHE_REVALIDATE,
    'accept-ranges': 'bytes',
    etag,
    // Of deployments within one second, the last may have a time to come.
    'last-modified': toHttpDate(Math.min(site.modified, Math.floor(now() / 1000))),
    ...(encoding && { 'content-encoding': encoding }),
    ...(vary.some(Boolean) && { vary: vary.filter(Boolean).join(', ') }),
  })
  ofFile ??= new Map()
  ofFile.set(encoding, { content, etag, headers })
  representations.set(file, ofFile)
  return { content, etag, headers }
}

const rangeNotSatisfiable = (size: number) =>
  new Problem(416, 'RANGE_NOT_SATISFIABLE', `The file has only ${size} bytes.`, {
    headers: { 'content-range': `bytes */${size}` },
  })
