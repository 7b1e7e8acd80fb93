import { Problem } from './problem'

const DEPTH = 64

/** What is asked while a body is read, and throws what is not taken. */
export type Judging = {
  /** So many bytes are there or announced, and `most` may come. */
  bytes?: (count: number, most: number) => void
  /** The JSON of one that is not small. */
  value?: (value: unknown) => void
}

const LARGE = 4 << 10 // characters; in fewer nothing can be so long that it matters

/**
 * The JSON of a request's body; undefined when there is none.
 * @throws 413 beyond `limit` bytes, 415 for another type, 400 for what is not JSON or cannot be kept; and what is judged
 */
export async function readJson(request: Request, limit: number, judging: Judging = {}): Promise<unknown> {
  const text = await readText(request, limit, judging)
  if (text === undefined) return
  if (!isJson(request))
    throw new Problem(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send JSON, with the header Content-Type: application/json.')
  try {
    const value: unknown = JSON.parse(text)
    if (text.length > LARGE) judging.value?.(value)
    return keepable(value)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw malformed()
  }
}

/** Whether the body of a request calls itself JSON. */
export const isJson = ({ headers }: Request) =>
  /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(headers.get('content-type') ?? '')

export const malformed = () =>
  new Problem(400, 'MALFORMED_BODY', 'The body is not JSON. Check its quotes, commas and brackets.')

/** The value of a JSON text. @throws SyntaxError, and 400 for what cannot be kept */
export const parseJson = (text: string): unknown => keepable(JSON.parse(text))

/** A value as it is, if it can be kept. @throws 400 */
export function keepable<T>(value: T): T {
  inspect(value, DEPTH)
  return value
}

/** Whether a value that nobody sent is one that could have been. */
export function isKeepable(value: unknown): boolean {
  try {
    keepable(value)
    return true
  } catch {
    return false
  }
}

/** A text that somebody else made, without what no engine can keep. */
export const keepableText = (text: string): string => text.replaceAll('\0', '').toWellFormed()

let incoming = 0

/** How many bodies are being received. A server that stops does not wait long for the rest of them. */
export const countIncomingBodies = () => incoming

async function receive<T>(body: Promise<T>): Promise<T> {
  incoming++
  return body.finally(() => incoming--)
}

/** The text of a request's body; undefined for one of no bytes. @throws 413 beyond `limit` bytes */
export async function readText(request: Request, limit: number, judging: Judging = {}): Promise<string | undefined> {
  const length = announced(request, limit)
  if (length) judging.bytes?.(length, length)
  if (length !== undefined) return length ? receive(request.text().catch(unreadable)) : undefined
  const bytes = await receive(counted(request.body!, limit, judging))
  return bytes.length ? new TextDecoder().decode(bytes) : undefined
}

/** The bytes of a request's body, as they came. @throws 413 beyond `limit` bytes */
export async function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  const length = announced(request, limit)
  return receive(length === undefined ? counted(request.body!, limit) : request.bytes().catch(unreadable))
}

/** How many bytes a body has, as far as that is known before. @throws 413 */
function announced({ body, headers }: Request, limit: number): number | undefined {
  if (!body) return 0
  const length = headers.get('content-length')
  if (Number(length) > limit) throw tooLarge(limit)
  return length ? Number(length) : undefined
}

/** A body of unannounced length is counted as it comes in. */
async function counted(body: ReadableStream<Uint8Array>, limit: number, judging: Judging = {}): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read().catch(unreadable)
    if (done) return Buffer.concat(chunks)
    size += value.byteLength
    try {
      if (size > limit) throw tooLarge(limit)
      judging.bytes?.(size, limit)
    } catch (error) {
      // Nobody waits for it: a sender may never end.
      reader.cancel().catch(() => {})
      throw error
    }
    chunks.push(value)
  }
}

/** For a body that breaks off. */
export const unreadable = (cause: unknown): never => {
  throw new Problem(400, 'MALFORMED_BODY', 'The body could not be read to its end.', { cause })
}

const tooLarge = (limit: number) =>
  new Problem(413, 'BODY_TOO_LARGE', `The body is too large: at most ${limit} bytes are taken here.`)

/** Refuses what no engine can keep, and what would exhaust the stack of those who walk through it. */
function inspect(value: unknown, depth: number): void {
  if (typeof value === 'string') {
    if (value.includes('\0')) throw unfit('Text must not contain the character U+0000.')
    if (!value.isWellFormed()) throw unfit('Text must not contain half of a surrogate pair.')
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw unfit('A number is too large.')
  } else if (value !== null && typeof value === 'object') {
    if (depth === 0) throw unfit(`The body is nested more than ${DEPTH} levels deep.`)
    // Whoever puts what does not fit into a sentence would fail, because this is no function.
    if (Object.hasOwn(value, 'toString')) Object.defineProperty(value, Symbol.toPrimitive, { value: () => '{…}' })
    for (const key in value) {
      if (key === '__proto__') throw unfit('A property must not be called "__proto__".')
      inspect(key, depth)
      inspect((value as Record<string, unknown>)[key], depth - 1)
    }
  }
}

const unfit = (message: string) => new Problem(400, 'INVALID_INPUT', message, { details: [{ path: '', message }] })
