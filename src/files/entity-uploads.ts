import type { Actor } from '../accounts/actors'
import type { PublicCtx } from '../accounts/context'
import { assertScope } from '../accounts/permissions'
import { badRequest, Problem } from '../core/problem'
import type { FileLimit, FormReceiver, ReceivedUploads, UploadedFile } from '../entities/form'
import { assertQuotaLeft, reserveQuota } from '../limits/quota-check'
import type { QuotaReservation } from '../limits/quota-use'
import type { Tx } from '../storage/port'
import type { FileRow } from './access'
import { storeContent } from './contents'
import { type Draft, withDraft } from './drafts'
import { toFileName, toFileUrl } from './file-name'
import { describeDraft, toFileRow } from './files'
import { receiveForm, withChunks } from './form'
import { files } from './tables'
import { openUploadReservation, reserveBytes } from './upload-reservation'

const MAX_FILES = 100

type Upload = { field: string; draft: Draft; row: FileRow }

/**
 * Receives a multipart form whose files are written to the disk as they arrive, and lets `use` make an entity of it.
 * What it does not make files of the tenant is removed before the answer is sent.
 * @throws 400, 401 for a file of a guest, 403 for one by a token without `files:write`, 413, 503, 507
 */
export async function receiveEntityForm<T>(
  ctx: PublicCtx,
  request: Request,
  receiver: FormReceiver,
  use: (uploads: ReceivedUploads) => Promise<T>,
): Promise<T> {
  const { actor } = ctx
  const done = Promise.withResolvers<void>()
  // In the order of the parts, whichever is on the disk first. An empty input has none.
  const receiving: Promise<Upload | undefined>[] = []
  const open: Promise<unknown>[] = []
  using bytes = await openUploadReservation(ctx, request)
  try {
    await withChunks(request, (chunks) =>
      receiveForm(request.headers.get('content-type')!, chunks, {
        onValue: receiver.onValue,
        async onFile(field, { name, type, content }) {
          const limit = receiver.onFile(field)
          const received = Promise.withResolvers<Upload | undefined>()
          receiving.push(received.promise)
          if (receiving.length > MAX_FILES)
            badRequest({ path: field, message: `A form has at most ${MAX_FILES} files.` })
          const limited = limitContent(content, limit, name)
          const admitted = actor ? reserveBytes(requireFileScope(actor, limited), bytes) : requireNoBytes(content)
          const kept = withDraft(ctx, admitted, async (draft) => {
            // Browsers send an empty file without a name for an input that was left empty.
            received.resolve(draft.size || name ? await toUpload(actor, field, draft, name, type) : undefined)
            await done.promise
          })
          open.push(kept)
          kept.catch(received.reject)
          await received.promise
        },
      }),
    )
    const uploads = await Promise.all(receiving)
    using stored = new StoredUploads(
      ctx,
      uploads.filter((upload) => !!upload),
      bytes,
    )
    return await use(stored)
  } finally {
    done.resolve()
    await Promise.allSettled(open)
  }
}

/** Yields a content until it is larger than its field takes: the rest is not received. */
async function* limitContent(content: AsyncIterable<Uint8Array>, { maxBytes, refuse }: FileLimit, name: string) {
  let bytes = 0
  for await (const chunk of content) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) refuse(toFileName(name))
    yield chunk
  }
}

async function toUpload(actor: Actor | undefined, field: string, draft: Draft, name: string, type: string) {
  if (!actor) throw unauthenticated()
  if (!draft.size) badRequest({ path: `/${field}`, message: `The file of ${field} is empty.` })
  return { field, draft, row: toFileRow(actor, draft, await describeDraft(draft, { name, type })) }
}

/** Passes on bytes for who may store files. An input for files may be left empty. @throws 403 without the scope */
async function* requireFileScope(actor: Actor, chunks: AsyncIterable<Uint8Array>) {
  for await (const chunk of chunks) {
    if (chunk.byteLength) assertScope(actor, 'files', 'write')
    yield chunk
  }
}

/** Passes on no bytes. A guest may leave an input for files empty, but not send any. @throws 401 UNAUTHENTICATED */
async function* requireNoBytes(chunks: AsyncIterable<Uint8Array>) {
  for await (const chunk of chunks) {
    if (chunk.byteLength) throw unauthenticated()
    yield chunk
  }
}

const unauthenticated = () => new Problem(401, 'UNAUTHENTICATED', 'Sign in to upload files.')

class StoredUploads implements ReceivedUploads, Disposable {
  readonly files: UploadedFile[]
  #fileCount?: QuotaReservation
  #stored?: Promise<void>

  constructor(
    private ctx: PublicCtx,
    private uploads: Upload[],
    private bytes: QuotaReservation | undefined,
  ) {
    this.files = uploads.map(({ field, row }) => ({ ...row, field, url: toFileUrl(row._id, row.name) }))
  }

  store = () => (this.#stored ??= this.#store())

  async #store() {
    if (!this.uploads.length) return
    await assertQuotaLeft(this.ctx, 'files')
    this.#fileCount = await reserveQuota(this.ctx, 'files', this.uploads.length)
    for (const { draft } of this.uploads) await storeContent(this.ctx, draft)
  }

  insert = async (tx: Tx, keep: boolean) => {
    for (const { row } of this.uploads) await tx.insert(files).values({ ...row, keep })
  }

  /** What was reserved counts, because the files are stored. */
  keep = () => {
    this.#fileCount?.keep()
    this.bytes?.keep()
  };

  [Symbol.dispose]() {
    this.#fileCount?.[Symbol.dispose]()
  }
}
