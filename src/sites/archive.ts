import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { extract } from 'tar-stream'
import { config } from '../config'
import { chunksOf, openBody } from '../core/incoming-body'
import { badRequest, Problem } from '../core/problem'
import { throwDiskFailure, writeDraft } from '../files/drafts'
import { draftFolder } from '../files/stores/folder'
import type { Tenant } from '../tenancy/tenants'
import { parseFileName } from './site-path'

const MAX_FILES = 10_000
/** Folders and files; folders are not stored. */
const MAX_ENTRIES = 2 * MAX_FILES
/** What headers and padding may take besides the files. */
const MAX_OVERHEAD = MAX_ENTRIES * 2_048
const TYPES = /^application\/(x-tar|gzip|x-gzip|x-gtar|x-tgz|octet-stream)\s*(;|$)/i

/** A file of an archive that is complete on the disk, at `draft`. */
export type UnpackedFile = { path: string; draft: string; size: number; sha256: string }
/** The files of an archive, and the folder of their drafts, which takes others, too. */
export type UnpackedSite = { files: UnpackedFile[]; folder: string }

/**
 * Writes the files of a tar archive, or of the gzip of one, to the disk while it arrives, hands them on, and removes what
 * is left of them then.
 * @throws 400 INVALID_INPUT, MALFORMED_BODY, 413 SITE_TOO_LARGE, FILE_TOO_LARGE, 415 UNSUPPORTED_MEDIA_TYPE, 507
 */
export async function withUnpackedSite<T>(
  { tenant }: Pick<Tenant, 'tenant'>,
  request: Request,
  use: (site: UnpackedSite) => Promise<T>,
): Promise<T> {
  if (!TYPES.test(request.headers.get('content-type') ?? ''))
    throw new Problem(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send a tar archive, with Content-Type: application/x-tar.')
  if (Number(request.headers.get('content-length')) > config.ATOLL_SITE_LIMIT + MAX_OVERHEAD) throw siteTooLarge()
  const body = openBody(request)
  if (!body) return badRequest({ path: '', message: 'Send a tar archive as the body.' })
  const folder = join(draftFolder(tenant), Bun.randomUUIDv7())
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    return await use({ folder, files: await unpack(chunksOf(body), folder) })
  } catch (error) {
    return throwDiskFailure(error)
  } finally {
    body.cancel()
    await rm(folder, { recursive: true, force: true })
  }
}

async function unpack(chunks: AsyncGenerator<Uint8Array>, folder: string): Promise<UnpackedFile[]> {
  const archive = extract()
  // Whoever reads the entries learns of the errors.
  const source = pipeline(Readable.from(limitBytes(decompress(chunks))), archive as never, () => {})
  try {
    const files = new Map<string, UnpackedFile>()
    let [entries, bytes] = [0, 0]
    for await (const entry of archive) {
      const { type, name, size = 0 } = entry.header
      if (++entries > MAX_ENTRIES) throw siteTooLarge()
      if (type === 'directory') {
        entry.resume()
        continue
      }
      if (type !== 'file' && type !== 'contiguous-file')
        badRequest({ path: name, message: `The archive has "${name.slice(0, 100)}", which is ${describeType(type)}.` })
      const path = parseFileName(name)
      if (files.has(path)) badRequest({ path, message: `The archive has "${path}" twice.` })
      bytes += size
      if (bytes > config.ATOLL_SITE_LIMIT || files.size === MAX_FILES) throw siteTooLarge()
      files.set(path, await unpackFile(entry as AsyncIterable<Uint8Array>, path, join(folder, `${files.size}`)))
    }
    if (!files.has('index.html'))
      badRequest({
        path: 'index.html',
        message: 'The archive has no index.html at its top. Pack the folder that has it.',
      })
    return [...files.values()]
  } catch (error) {
    throw toArchiveProblem(error)
  } finally {
    ;(source as unknown as Readable).destroy()
  }
}

/** What is not a file, by the names of `tar-stream`, which has none for the extensions of GNU tar. */
const ENTRY_TYPES: Record<string, string> = {
  link: 'a hard link',
  symlink: 'a symbolic link',
  'character-device': 'a device',
  'block-device': 'a device',
  fifo: 'a named pipe',
}
const describeType = (type: string | null | undefined) =>
  ENTRY_TYPES[type ?? ''] ??
  'an extension of GNU tar: a sparse file, a volume label or a part of another volume. Pack plain files, without --sparse'

async function unpackFile(entry: AsyncIterable<Uint8Array>, path: string, draft: string): Promise<UnpackedFile> {
  const { size, sha256 } = await writeDraft(draft, entry)
  return { path, draft, size, sha256 }
}

/** Unpacks what begins as gzip does, and passes on everything else. */
async function* decompress(chunks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  const { value: first } = await chunks.next()
  if (!first) return
  const all = prepend(first, chunks)
  if (first[0] !== 0x1f || (first.byteLength > 1 && first[1] !== 0x8b)) return yield* all
  // Whoever reads the result learns of the errors.
  yield* pipeline(Readable.from(all), createGunzip(), () => {})
}

async function* prepend(first: Uint8Array, others: AsyncGenerator<Uint8Array>) {
  yield first
  yield* others
}

/** A small archive can unpack to a thousand times as much. @throws 413 SITE_TOO_LARGE */
async function* limitBytes(chunks: AsyncGenerator<Uint8Array>) {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.byteLength
    if (bytes > config.ATOLL_SITE_LIMIT + MAX_OVERHEAD) throw siteTooLarge()
    yield chunk
  }
}

function toArchiveProblem(error: unknown): unknown {
  // What the disk refuses is not the fault of the archive.
  if (error instanceof Problem || (error as { syscall?: string }).syscall) return error
  return new Problem(400, 'MALFORMED_BODY', 'The archive is broken or ended before it was complete.', { cause: error })
}

const siteTooLarge = () =>
  new Problem(
    413,
    'SITE_TOO_LARGE',
    `The site is too large: at most ${MAX_FILES} files and ${config.ATOLL_SITE_LIMIT} bytes are accepted.`,
  )
