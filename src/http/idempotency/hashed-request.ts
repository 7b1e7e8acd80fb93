import { config } from '../../config'
import { type IncomingBody, watchPace } from '../../core/incoming-body'
import { Problem } from '../../core/problem'
import { inheritRequestId } from '../../core/request-id'
import { linkOriginalRequest } from '../../tenancy/client-connection'

const BODY_READERS = ['text', 'json', 'arrayBuffer', 'blob', 'bytes', 'formData']

/**
 * A request whose body is hashed while it is read, by whichever code, and not stored. The hash has a key: a body may
 * hold a password, which could be guessed from a plain hash.
 */
export class HashedRequest {
  readonly request: Request
  #hasher: Bun.CryptoHasher
  #body: ReadableStream<Uint8Array> | null
  #ended: boolean
  #digest?: string

  constructor(original: Request, key: Uint8Array) {
    const { url } = original
    this.#hasher = new Bun.CryptoHasher('sha256', key).update(`${url.slice(url.indexOf('?') >>> 0)}\n`)
    this.#ended = !original.body
    this.#body = original.body && this.#hashWhileReading(original.body)
    this.request = new Proxy(original, {
      get: (target, key: keyof Request) => {
        if (key === 'body') return this.#body
        if (BODY_READERS.includes(key))
          return () => new Response(this.#body, { headers: target.headers })[key as 'text']()
        const value = Reflect.get(target, key, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    linkOriginalRequest(this.request, original)
    inheritRequestId(this.request, original)
  }

  /** Distinguishes this request from others with its key; undefined until the whole body was read. */
  get fingerprint(): string | undefined {
    if (this.#ended) this.#digest ??= this.#hasher.digest('hex')
    return this.#digest
  }

  /**
   * Reads the body if nothing else does. Returns the fingerprint, or undefined when something else has read only a part
   * of the body.
   * @throws 400 for an unreadable body, 413 BODY_TOO_LARGE
   */
  async read(): Promise<string | undefined> {
    const { ATOLL_BODY_LIMIT, ATOLL_AI_BODY_LIMIT, ATOLL_UPLOAD_LIMIT, ATOLL_IMPORT_LIMIT } = config
    const limit = Math.max(ATOLL_BODY_LIMIT, ATOLL_AI_BODY_LIMIT, ATOLL_UPLOAD_LIMIT, ATOLL_IMPORT_LIMIT)
    const body = this.#ended || this.#body?.locked ? undefined : this.#body && watchPace(this.#body)
    for (let size = 0; body && !this.#ended; ) {
      const { value } = await body.read()
      size += value?.byteLength ?? 0
      if (size <= limit) continue
      body.cancel()
      throw new Problem(413, 'BODY_TOO_LARGE', `The body is too large. The limit is ${limit} bytes.`)
    }
    return this.fingerprint
  }

  #hashWhileReading(stream: ReadableStream<Uint8Array>) {
    const body: IncomingBody = watchPace(stream)
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const { value } = await body.read()
          this.#ended = !value
          if (!value) return controller.close()
          this.#hasher.update(value)
          controller.enqueue(value)
        },
        cancel: () => body.cancel(),
      },
      { highWaterMark: 0 },
    )
  }
}
