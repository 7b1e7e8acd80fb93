import type { Readable } from 'node:stream'
import { config } from '../config'
import { throwUnreadableBody } from '../core/body'
import { badRequest, Problem } from '../core/problem'
import { fileTooLarge } from './drafts'

/** A file as it arrives. `name` and `type` are what the client says. */
export type IncomingFile = { name: string; type: string; content: AsyncIterable<Uint8Array> }

/** The bytes that boundaries and headers of a multipart body may have besides the file. */
const MULTIPART_OVERHEAD = 64 << 10

/**
 * Receives the file of a request, whose body is the file or a multipart form with the part `file`, and returns what
 * `receive` makes of it.
 * @throws 413 FILE_TOO_LARGE, 400 INVALID_INPUT, 400 MALFORMED_BODY
 */
export async function receiveUpload<T>(
  request: Request,
  name: string | undefined,
  receive: (file: IncomingFile) => Promise<T>,
): Promise<T> {
  const type = request.headers.get('content-type') ?? ''
  if (Number(request.headers.get('content-length')) > config.ATOLL_FILE_LIMIT + MULTIPART_OVERHEAD) throw fileTooLarge()
  if (!request.body) return badRequest({ path: 'file', message: 'Send the file as the body, or as the part "file".' })
  const reader = request.body.getReader()
  try {
    if (/^multipart\/form-data\s*;/i.test(type)) return await receiveMultipart(type, readChunks(reader), name, receive)
    return await receive({ name: name ?? '', type, content: freeAfterUse(readChunks(reader)) })
  } finally {
    // Not awaited, because a sender may never end.
    reader.cancel().catch(() => {})
  }
}

async function* readChunks(reader: { read(): Promise<{ done: boolean; value?: Uint8Array }> }) {
  for (;;) {
    const { done, value } = await reader.read().catch(throwUnreadableBody)
    if (done) return
    yield value!
  }
}

/** Frees each chunk when the next one is asked for: the garbage collector would let dozens of megabytes pile up. */
async function* freeAfterUse(chunks: AsyncIterable<Uint8Array>) {
  for await (const chunk of chunks) {
    yield chunk
    if (chunk.byteLength === chunk.buffer.byteLength) (chunk.buffer as ArrayBuffer).transfer(0)
  }
}

async function receiveMultipart<T>(
  type: string,
  chunks: AsyncIterable<Uint8Array>,
  name: string | undefined,
  receive: (file: IncomingFile) => Promise<T>,
): Promise<T> {
  const parser = await createParser(type)
  const failed = Promise.withResolvers<never>()
  const finished = Promise.withResolvers<void>()
  failed.promise.catch(() => {}) // who waits for it learns of the error
  let incoming: Readable | undefined
  let received: Promise<T> | undefined
  const fail = (error: Error) => {
    failed.reject(error)
    incoming?.destroy(error)
  }
  const reject = (path: string, message: string) => fail(captureProblem(path, message))
  parser.on('file', (field: string, stream: Readable, fileName: string | undefined, _, mediaType: string) => {
    // Who reads it learns of its errors.
    stream.on('error', () => {})
    if (field !== 'file' || received) {
      stream.resume()
      return reject(field, received ? 'Send one file at a time.' : unknownPartMessage(field))
    }
    incoming = stream
    received = receive({ name: name ?? fileName ?? '', type: mediaType, content: readPart(stream) })
    received.catch(fail)
  })
  parser.on('field', (field: string) => reject(field, unknownPartMessage(field)))
  parser.on('error', (cause) => fail(malformedForm(cause)))
  parser.on('finish', finished.resolve)
  const feed = async () => {
    for await (const chunk of chunks)
      if (!parser.write(chunk)) await new Promise<void>((resolve) => parser.once('drain', resolve))
    parser.end()
    await finished.promise
  }
  const feeding = feed().catch((error) => fail(error))
  try {
    await Promise.race([feeding, failed.promise])
    if (!received) return badRequest({ path: 'file', message: 'The form has no part "file".' })
    return await Promise.race([received, failed.promise])
  } finally {
    incoming?.destroy()
    // A draft is removed before the answer is sent.
    await received?.catch(() => {})
  }
}

async function* readPart(stream: Readable): AsyncGenerator<Uint8Array> {
  try {
    yield* stream
  } catch (error) {
    throw error instanceof Problem ? error : malformedForm(error)
  }
}

async function createParser(type: string) {
  const { Busboy } = await import('@fastify/busboy')
  try {
    return new Busboy({ headers: { 'content-type': type }, limits: { fieldNameSize: 200, headerPairs: 50 } })
  } catch (cause) {
    throw malformedForm(cause)
  }
}

const unknownPartMessage = (field: string) => `The form has the unknown part "${field}". Send only the part "file".`

const malformedForm = (cause: unknown) =>
  new Problem(400, 'MALFORMED_BODY', 'The multipart form is broken or ended before it was complete.', { cause })

function captureProblem(path: string, message: string): Problem {
  try {
    return badRequest({ path, message })
  } catch (error) {
    return error as Problem
  }
}
