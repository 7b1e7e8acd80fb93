import { Problem } from './problem'

/**
 * Returns the ETag of one version of a record. `updated` distinguishes it from an earlier record with the same id,
 * `form` from other representations.
 */
export const etagOf = (version: number, updated: number | string, form = 0) =>
  `"${version}${form ? `.${form}` : ''}-${(typeof updated === 'string' ? Date.parse(updated) : updated).toString(36)}"`

/** @throws 412 VERSION_MISMATCH when a change is meant for another version, as `If-Match` says */
export function assertIfMatch(ifMatch: string | null | undefined, etag: string) {
  if (ifMatch && !includesEtag(ifMatch, etag))
    throw new Problem(412, 'VERSION_MISMATCH', 'The resource has changed since you read it. Read it again, then retry.')
}

/** Tells whether `If-None-Match` names this version, so that the caller has it already. */
export function isNotModified({ headers }: Pick<Request, 'headers'>, etag: string) {
  const ifNoneMatch = headers.get('if-none-match')
  return !!ifNoneMatch && includesEtag(ifNoneMatch, etag)
}

/** Returns the answer to a read, or 304 when the client has this version already. */
export function respondIfModified(request: Request, response: Response): Response {
  const etag = response.status === 200 && request.headers.has('if-none-match') && response.headers.get('etag')
  if (!etag || !isNotModified(request, etag)) return response
  response.body?.cancel().catch(() => {})
  const headers = new Headers(response.headers)
  for (const name of ['content-type', 'content-length']) headers.delete(name)
  return new Response(null, { status: 304, headers })
}

/** What proxies that compress make of `"v"`: `W/"v"` or `"v-gzip"`. It is the same version. */
const ENTITY_TAG = /^(?:W\/)?("[^"]*?)(?:-(?:gzip|br|zstd))?"$/

/** Tells whether the list of a condition names this version. */
export const includesEtag = (list: string, etag: string) =>
  list.trim() === '*' || list.split(',').some((item) => `${ENTITY_TAG.exec(item.trim())?.[1]}"` === etag)
