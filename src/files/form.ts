import type { Readable } from 'node:stream'
import { config } from '../config'
import { chunksOf, decodeBodyText, notUtf8, openBody } from '../core/incoming-body'
import { Problem } from '../core/problem'

/** A file as it arrives. `name` and `type` are what the client says. */
export type IncomingFile = { name: string; type: string; content: AsyncIterable<Uint8Array> }

export type FormReceiver = {
  /** Called when a file begins; the form goes on once its content was read. A rejection refuses the form. */
  onFile(field: string, file: IncomingFile): Promise<unknown>
  /** Called with a part that is no file. An error refuses the form. */
  onValue(field: string, text: string): void
}

const MAX_PARTS = 5_000

/** Lets `use` read the body of a request as it arrives, and returns its result. @throws 400, 408, 415 */
export async function withChunks<T>(
  request: Request,
  use: (chunks: AsyncIterable<Uint8Array>) => Promise<T>,
): Promise<T> {
  const body = openBody(request)
  if (!body) return use(noChunks())
  try {
    return await use(chunksOf(body))
  } finally {
    body.cancel()
  }
}

async function* noChunks() {}

/** Frees each chunk when the next one is asked for: the garbage collector would let dozens of megabytes pile up. */
export async function* freeAfterUse(chunks: AsyncIterable<Uint8Array>) {
  for await (const chunk of chunks) {
    yield chunk
    if (chunk.byteLength === chunk.buffer.byteLength) (chunk.buffer as ArrayBuffer).transfer(0)
  }
}

/**
 * Receives a multipart form part by part, and resolves at its end, when all files were read.
 * @throws 400 MALFORMED_BODY, 413 BODY_TOO_LARGE, and the errors of the receiver
 */
export async function receiveForm(
  type: string,
  chunks: AsyncIterable<Uint8Array>,
  { onFile, onValue }: FormReceiver,
): Promise<void> {
  const parser = await createParser(type)
  const failed = Promise.withResolvers<never>()
  const finished = Promise.withResolvers<void>()
  failed.promise.catch(() => {}) // who waits for it learns of the error
  let incoming: Readable | undefined
  /** The values so far: parts are handed on in their order. */
  let values: Promise<unknown> = Promise.resolve()
  const fail = (error: unknown) => {
    failed.reject(error)
    incoming?.destroy(error as Error)
  }
  parser.on('file', (field: string, stream: Readable, name: string | undefined, _, mediaType: string) => {
    // Who reads it learns of its errors.
    stream.on('error', () => {})
    incoming = stream
    // The library replaces what is not UTF-8.
    if (field.includes('\ufffd') || name?.includes('\ufffd')) return fail(notUtf8())
    if (name === undefined && mediaType !== 'application/octet-stream') {
      values = values.then(() => readValue(field, stream))
      values.catch(fail)
    } else {
      const file = { name: name ?? '', type: mediaType, content: readPart(stream) }
      values.then(() => onFile(field, file)).catch(fail)
    }
  })
  const readValue = async (field: string, stream: Readable) => {
    const parts: Uint8Array[] = []
    let size = 0
    for await (const part of readPart(stream)) {
      size += part.byteLength
      if (size > config.ATOLL_BODY_LIMIT)
        throw new Problem(413, 'BODY_TOO_LARGE', `The part "${field}" of the form is too large.`)
      parts.push(part)
    }
    onValue(field, decodeBodyText(Buffer.concat(parts)))
  }
  parser.on('partsLimit', () => fail(new Problem(413, 'BODY_TOO_LARGE', `A form has at most ${MAX_PARTS} parts.`)))
  parser.on('error', (cause) => fail(malformedForm(cause)))
  parser.on('finish', finished.resolve)
  const feed = async () => {
    for await (const chunk of chunks)
      if (!parser.write(chunk)) await new Promise<void>((resolve) => parser.once('drain', resolve))
    parser.end()
    await finished.promise
    await values
  }
  try {
    await Promise.race([feed(), failed.promise])
  } catch (error) {
    fail(error)
    throw error
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
  const limits = { fieldNameSize: 200, headerPairs: 50, parts: MAX_PARTS }
  try {
    // Every part is read as bytes: the library would replace what is not UTF-8.
    return new Busboy({ headers: { 'content-type': type }, limits, isPartAFile: () => true })
  } catch (cause) {
    throw malformedForm(cause)
  }
}

const malformedForm = (cause: unknown) =>
  new Problem(400, 'MALFORMED_BODY', 'The multipart form is broken or ended before it was complete.', { cause })
