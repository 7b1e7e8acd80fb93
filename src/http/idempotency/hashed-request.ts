import { config } from '../../config'
import { throwUnreadableBody } from '../../core/body'
import { Problem } from '../../core/problem'
import { inheritRequestId } from '../../core/request-id'
import { linkOriginalRequest } from '../../tenancy/client-connection'

const BODY_READERS = ['text', 'json', 'arrayBuffer', 'blob', 'bytes', 'formData']

/**
 * A request whose body is hashed while it is read, whoever reads it, and kept nowhere. The hash has a key: a body may hold
 * a password, which who finds a plain hash of it could guess.
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

  /** Tells this request from others with its key; undefined as long as not all of it was read. */
  get fingerprint(): string | undefined {
    if (this.#ended) this.#digest ??= this.#hasher.digest('hex')
    return this.#digest
  }

  /** The same, when nobody else reads it. @throws 400, 413 */
  async read(): Promise<string> {
    const limit = Math.max(config.ATOLL_BODY_LIMIT, config.ATOLL_IMPORT_LIMIT)
    const reader = this.#ended || this.#body?.locked ? undefined : this.#body?.getReader()
    for (let size = 0; reader && !this.#ended; ) {
      const { value } = await reader.read().catch(throwUnreadableBody)
      size += value?.byteLength ?? 0
      if (size <= limit) continue
      reader.cancel().catch(() => {})
      throw new Problem(413, 'BODY_TOO_LARGE', `The body is too large: at most ${limit} bytes are taken here.`)
    }
    return this.fingerprint ?? ''
  }

  #hashWhileReading(body: ReadableStream<Uint8Array>) {
    const reader = body.getReader()
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const { done, value } = await reader.read()
          this.#ended = done
          if (done) return controller.close()
          this.#hasher.update(value)
          controller.enqueue(value)
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    )
  }
}
