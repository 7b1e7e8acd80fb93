import type { PublicCtx } from '../accounts/context'
import type { Content as StoredContent } from '../backups/contents/content-store'
import { hasCurrent, parseRange, toHttpDate } from '../core/preconditions'
import { notFound, Problem } from '../core/problem'
import { OMITTED_BODY_LENGTH } from '../core/response'
import { parseOptional } from '../core/shapes'
import { missingContent } from '../tenancy/servers'
import { type FileRow, findReadableFile, getFile } from './access'
import { checkLink } from './links'
import { isShownInBrowsers } from './media-type'
import { contentStore } from './stores/index'
import type { Fit } from './thumbnails/order'
import { describeThumbnail, openThumbnail } from './thumbnails/thumbnails'

type ContentQuery = { token?: string; download?: string; thumb?: string; fit?: Fit }

/** What a request reads: the content of a file, or a thumbnail of it, whose size is known when it is open. */
type Content = { name: string; type: string; size?: number; etag: string; open(): Promise<StoredContent | undefined> }

/**
 * Returns the content of a file or its thumbnail, or the part of it that `Range` names. A guest reads it by a token, or by
 * a field that guests may read.
 * @throws 401 without a valid credential or token, 404 FILE_NOT_FOUND, 412 VERSION_MISMATCH, 404 FILE_CONTENT_MISSING, and for thumbnails
 * 400 INVALID_INPUT, 415 NOT_A_PICTURE, 415 PICTURE_UNREADABLE, 503 BUSY
 */
export async function download(ctx: PublicCtx, id: string, query: ContentQuery, request: Request): Promise<Response> {
  const file = await getOpenedFile(ctx, id, parseOptional(query.token))
  const content = await findContent(ctx, file, query, request)
  const validators = { etag: content.etag, modified: Math.floor(Date.parse(file.created) / 1000) }
  const headers = new Headers(toContentHeaders(content, validators.modified, query.download !== undefined))
  if (hasCurrent(request, validators)) return new Response(null, { status: 304, headers })
  const opened = await content.open()
  if (!opened) throw await missingContent('Upload the file again.')
  const { size = opened.size } = content
  const range = parseRange(request, size, validators)
  if (range === 'unsatisfiable') {
    const more = { headers: { 'content-range': `bytes */${size}` } }
    throw new Problem(416, 'RANGE_NOT_SATISFIABLE', `The file has only ${size} bytes.`, more)
  }
  const [start, end] = range ?? [0, size]
  headers.set('content-length', `${end - start}`)
  if (range) headers.set('content-range', `bytes ${start}-${end - 1}/${size}`)
  const status = range ? 206 : 200
  if (request.method === 'HEAD') {
    headers.set(OMITTED_BODY_LENGTH, `${end - start}`)
    return new Response(null, { status, headers })
  }
  const body = range ? opened.slice(start, end) : opened
  return new Response(body instanceof Blob ? body : body.stream(), { status, headers })
}

async function findContent(
  ctx: PublicCtx,
  file: FileRow,
  { thumb, fit }: ContentQuery,
  request: Request,
): Promise<Content> {
  if (thumb === undefined) {
    const open = () => contentStore().open(ctx.tenant, file.sha256)
    const { name, type, size } = file
    return { name, type, size, etag: `"${file.sha256}"`, open }
  }
  const thumbnail = await describeThumbnail(ctx, file, thumb, fit)
  const { type } = thumbnail
  const name = type === file.type ? file.name : `${file.name.replace(/\.\w{1,5}$/, '')}.${type.slice('image/'.length)}`
  return { name, type, etag: `"${thumbnail.name}"`, open: () => openThumbnail(ctx, file, thumbnail, request) }
}

async function getOpenedFile(ctx: PublicCtx, id: string, token: string | undefined): Promise<FileRow> {
  const link = token === undefined ? undefined : await checkLink(ctx, id, token)
  if (link === 'valid') return getFile(ctx.db, id)
  const readable = await findReadableFile(ctx, id)
  if (readable) return readable
  if (ctx.actor) return notFound('file')
  const message =
    link === undefined
      ? 'Sign in first, or send a token of the file.'
      : link === 'expired'
        ? 'The token of the file has expired. Create another one.'
        : 'The token is not one of this file. Use the whole URL that came with it.'
  throw new Problem(401, 'UNAUTHENTICATED', message)
}

/** What a browser could run is saved instead of shown, and sandboxed, so that it never runs in the origin of the API. */
function toContentHeaders(
  { type, name, etag }: Content,
  modified: number,
  isDownload: boolean,
): Record<string, string> {
  const disposition = isDownload || !isShownInBrowsers(type) ? 'attachment' : 'inline'
  const fallback = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  // Browsers show no PDF in a sandbox. It has an origin of its own there anyway.
  const policy = type === 'application/pdf' ? "style-src 'unsafe-inline'; object-src 'self'" : 'sandbox'
  return {
    etag,
    'last-modified': toHttpDate(modified),
    'content-type': type.startsWith('text/') ? `${type};charset=utf-8` : type,
    'content-disposition': `${disposition}; filename="${fallback}"; filename*=UTF-8''${encodeRfc5987(name)}`,
    'content-security-policy': `default-src 'none'; frame-ancestors 'self'; ${policy}`,
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-cache',
  }
}

const encodeRfc5987 = (name: string) =>
  encodeURIComponent(name).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
