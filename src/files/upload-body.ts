import { config } from '../config'
import { badRequest } from '../core/problem'
import { parseFlag } from '../core/shapes'
import { fileTooLarge } from './drafts'
import { freeAfterUse, type IncomingFile, receiveForm, withChunks } from './form'

/** The bytes that boundaries and headers of a multipart body may have besides the file. */
const MULTIPART_OVERHEAD = 64 << 10

/** One without a boundary is a malformed form, not a file. */
const MULTIPART = /^multipart\/form-data\s*(?:;|$)/i

export type UploadOptions = { name?: string; keep?: string }

/** A file as it arrives, and its options, which are known once everything has arrived. */
export type IncomingUpload = IncomingFile & { options: Promise<{ keep: boolean }> }

/**
 * Receives the file of a request, whose body is the file or a multipart form with the part `file`, and returns what
 * `receive` makes of it.
 * @throws 413 FILE_TOO_LARGE, 400 INVALID_INPUT, 400 MALFORMED_BODY
 */
export async function receiveUpload<T>(
  request: Request,
  options: UploadOptions,
  receive: (file: IncomingUpload) => Promise<T>,
): Promise<T> {
  const type = request.headers.get('content-type') ?? ''
  if (Number(request.headers.get('content-length')) > config.ATOLL_FILE_LIMIT + MULTIPART_OVERHEAD) throw fileTooLarge()
  const keep = !!parseFlag(options, 'keep')
  if (!request.body) return badRequest({ path: 'file', message: 'Send the file as the body, or as the part "file".' })
  return withChunks(request, (content) =>
    MULTIPART.test(type)
      ? receiveFileForm(type, content, { ...options, keep }, receive)
      : receive({ name: options.name ?? '', type, content: freeAfterUse(content), options: Promise.resolve({ keep }) }),
  )
}

async function receiveFileForm<T>(
  type: string,
  content: AsyncIterable<Uint8Array>,
  { name, keep }: { name?: string; keep: boolean },
  receive: (file: IncomingUpload) => Promise<T>,
): Promise<T> {
  const complete = Promise.withResolvers<{ keep: boolean }>()
  complete.promise.catch(() => {}) // who waits for it learns of the error
  let received: Promise<T> | undefined
  let isKept = keep
  try {
    await receiveForm(type, content, {
      async onFile(field, file) {
        assertPart(field, 'file')
        if (received) badRequest({ path: field, message: 'Send one file at a time.' })
        received = receive({ ...file, name: name ?? file.name, options: complete.promise })
        await received
      },
      onValue(field, text) {
        assertPart(field, 'keep')
        isKept = !!parseFlag({ keep: text }, 'keep')
      },
    })
    if (!received) return badRequest({ path: 'file', message: 'The form has no part "file".' })
    complete.resolve({ keep: isKept })
    return await (received as Promise<T>)
  } catch (error) {
    complete.reject(error)
    // A draft is removed before the answer is sent.
    await (received as Promise<T> | undefined)?.catch(() => {})
    throw error
  }
}

function assertPart(field: string, name: string) {
  const message = `The form has the unknown part "${field.slice(0, 100)}". Send the parts "file" and "keep" only.`
  if (field !== name) badRequest({ path: field, message })
}
