import { Problem } from './problem'

/** How slow a sender may be: slower than this for the patience in total, and the request is refused. */
export const bodyPace = { minBytesPerSecond: 512, patienceMs: 25_000 }

/** An announced body up to this size arrives within the patience at 1 kB/s, so that its pace need not be watched. */
export const UNWATCHED_BODY_LENGTH = 16 << 10

/** The body of a request, chunk by chunk. What cannot be read is refused with 400, 408 or 415. */
export type IncomingBody = {
  read(): Promise<{ done: boolean; value?: Uint8Array }>
  /** Stops the reading. It is not awaited, because a sender may never end. */
  cancel(): void
}

/** Opens the body of a request; undefined where there is none. @throws 415 for a body in an encoding such as gzip */
export function openBody(request: Request): IncomingBody | undefined {
  if (!request.body) return
  assertNotEncoded(request)
  return watchPace(request.body)
}

/** Reads a stream as its sender sends it, and refuses a sender that is too slow. */
export function watchPace(stream: ReadableStream<Uint8Array>): IncomingBody {
  const reader = stream.getReader()
  let patience = bodyPace.patienceMs
  return {
    async read() {
      const since = performance.now()
      const chunk = await withinPatience(reader.read(), patience)
      // Only the time in which we wait counts, and not the time in which the sender has to wait for us.
      const earned = ((chunk.value?.byteLength ?? 0) / bodyPace.minBytesPerSecond) * 1000
      patience = Math.min(bodyPace.patienceMs, patience - (performance.now() - since) + earned)
      return chunk
    },
    // What a cancelled sender still sends, and how it ends, is of no interest.
    cancel: () => void reader.cancel().catch(() => {}),
  }
}

/** Yields the chunks of a body. */
export async function* chunksOf(body: IncomingBody): AsyncGenerator<Uint8Array> {
  for (;;) {
    const { done, value } = await body.read()
    if (done) return
    yield value!
  }
}

/** Waits for what a client sends. @throws 400 MALFORMED_BODY when it ends early, 408 REQUEST_TIMEOUT */
export function withinPatience<T>(arriving: Promise<T>, patience = bodyPace.patienceMs): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const timer = setTimeout(() => reject(requestTimeout()), Math.max(0, patience))
  arriving.then(
    (value) => {
      clearTimeout(timer)
      resolve(value)
    },
    (cause) => {
      clearTimeout(timer)
      reject(cause instanceof Problem ? cause : endedEarly(cause))
    },
  )
  return promise
}

const endedEarly = (cause: unknown) =>
  new Problem(400, 'MALFORMED_BODY', 'The body ended before it was complete.', { cause })

const requestTimeout = () =>
  new Problem(408, 'REQUEST_TIMEOUT', 'The body arrived too slowly, or stopped arriving. Send the request again.', {
    // Nobody waits for the rest of the body.
    headers: { connection: 'close' },
  })

/** @throws 415 UNSUPPORTED_MEDIA_TYPE for a body in an encoding such as gzip */
export function assertNotEncoded({ headers }: Request) {
  const encoding = headers.get('content-encoding')?.trim() || 'identity'
  if (encoding.toLowerCase() === 'identity') return
  const message = `Send the body as it is, without Content-Encoding: ${encoding.slice(0, 50)}.`
  throw new Problem(415, 'UNSUPPORTED_MEDIA_TYPE', message, { headers: { 'accept-encoding': 'identity' } })
}

/** @throws 415 UNSUPPORTED_MEDIA_TYPE for a `Content-Type` with a charset other than UTF-8, whose part ASCII is */
export function assertUtf8Charset(contentType: string | null) {
  const [, quoted, plain] = /;\s*charset\s*=\s*(?:"([^"]*)"|([^\s;"]*))/i.exec(contentType ?? '') ?? []
  const charset = quoted ?? plain
  if (charset === undefined || /^(utf-?8|(us-)?ascii)$/i.test(charset.trim())) return
  throw new Problem(415, 'UNSUPPORTED_MEDIA_TYPE', `Send text in UTF-8, not in ${charset.slice(0, 50)}.`)
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Returns the text of bytes. @throws 400 MALFORMED_BODY when they are not UTF-8 */
export function decodeBodyText(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw notUtf8()
  }
}

export const notUtf8 = () => new Problem(400, 'MALFORMED_BODY', 'The body is not UTF-8. Convert its text, then retry.')
