import { AwsV4Signer } from 'aws4fetch'
import { sendOutboundRequest, toHeaders } from '../../core/outbound-request'
import { parseRetryAfter } from '../../core/retry-after'
import { StoreFailure, storeStalled, toStoreFailure } from './store-failure'
import { completeStoreAccess, type StoreAccess } from './store-settings'

const STALL_MS = 20_000
const RETRY_DELAYS_MS = [500, 2_000, 8_000]
const MAX_RETRY_AFTER_MS = 60_000
const SLOWEST_BYTES_PER_MS = 47 // what was handed to the system may take so long to arrive
const MAX_TEXT_BYTES = 64 << 20

/** How patient a connection is: when an attempt has stalled (ms), and the pauses before further attempts (ms). */
export type StorePatience = { stallMs?: number; retryDelaysMs?: readonly number[] }

export type StoreRequest = {
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  key?: string
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: Uint8Array
  /** Statuses that are no failure, besides those of success. */
  accepts?: readonly number[]
}

export type StoreAnswer = { status: number; headers: Headers; message: Awaited<ReturnType<typeof sendOutboundRequest>> }

/**
 * Sends requests to a bucket, signed with the hash of their body. Each of them is idempotent, and is repeated after
 * failures that may pass: with growing pauses, or after as long as the store asks for.
 */
export class StoreConnection {
  readonly stallMs: number
  #access: ReturnType<typeof completeStoreAccess>
  #retryDelaysMs: readonly number[]
  #signingKeys = new Map<string, ArrayBuffer>()

  constructor(
    private bucket: string,
    access: StoreAccess,
    { stallMs = STALL_MS, retryDelaysMs = RETRY_DELAYS_MS }: StorePatience,
  ) {
    this.#access = completeStoreAccess(access)
    this.stallMs = stallMs
    this.#retryDelaysMs = retryDelaysMs
  }

  /** Sends a request, and returns what `read` makes of its answer. @throws StoreFailure */
  async exchange<T>(request: StoreRequest, read: (answer: StoreAnswer) => Promise<T> | T): Promise<T> {
    return this.repeat(() => this.#attempt(request, read))
  }

  /** Repeats work while it fails in a way that may pass. */
  async repeat<T>(work: (attempt: number) => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++)
      try {
        return await work(attempt)
      } catch (error) {
        const delay = this.#retryDelaysMs[attempt]
        if (!(error instanceof StoreFailure) || !error.options.isTransient || delay === undefined) throw error
        // Many requests that failed together must not come back together.
        const pause = delay * (0.5 + Math.random() / 2)
        await Bun.sleep(Math.max(pause, Math.min(error.options.retryAfter ?? 0, MAX_RETRY_AFTER_MS)))
      }
  }

  async #attempt<T>(request: StoreRequest, read: (answer: StoreAnswer) => Promise<T> | T): Promise<T> {
    const { method, body, accepts = [] } = request
    const { url, headers } = await this.#sign(request)
    const controller = new AbortController()
    const allowed = this.stallMs + (body?.byteLength ?? 0) / SLOWEST_BYTES_PER_MS
    const timer = setTimeout(() => controller.abort(storeStalled(this.stallMs)), allowed)
    try {
      const outbound = { method, headers, body: body?.byteLength ? body : null, signal: controller.signal }
      const message = await sendOutboundRequest('', url, outbound, { privateNetwork: true })
      const answer = { status: message.statusCode ?? 0, headers: toHeaders(message), message }
      if (answer.status < 300 || accepts.includes(answer.status)) return await read(answer)
      throw toStoreFailure(answer, await readBody(answer), parseRetryAfter(answer.headers.get('retry-after')))
    } catch (cause) {
      if (controller.signal.aborted) throw controller.signal.reason
      throw toFailure(cause)
    } finally {
      clearTimeout(timer)
    }
  }

  async #sign({ method, key, query = {}, headers: given = {}, body }: StoreRequest) {
    const { endpoint, region, accessKeyId, secretAccessKey, sessionToken } = this.#access
    if (!accessKeyId || !secretAccessKey)
      throw new StoreFailure('MissingCredentials', 'set S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY')
    const path = [this.bucket, ...(key === undefined ? [] : [key])].join('/')
    const url = new URL(`${endpoint}/${path.split('/').map(encodePart).join('/')}`)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const sha256 = await hashOf(body)
    const signer = new AwsV4Signer({
      ...{ method, url: url.href, headers: { ...given, 'x-amz-content-sha256': sha256 } },
      ...{ accessKeyId, secretAccessKey, sessionToken, service: 's3', region, cache: this.#signingKeys },
    })
    return signer.sign()
  }
}

/** A large part is hashed in another thread. */
const hashOf = async (body: Uint8Array = new Uint8Array()) =>
  body.byteLength < 65_536
    ? new Bun.CryptoHasher('sha256').update(body).digest('hex')
    : Buffer.from(await crypto.subtle.digest('SHA-256', body as Uint8Array<ArrayBuffer>)).toString('hex')

const encodePart = (part: string) =>
  encodeURIComponent(part).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

/** Returns the failure of an error of the connection. */
export function toFailure(cause: unknown): StoreFailure {
  if (cause instanceof StoreFailure) return cause
  const { code, message } = cause as Error & { code?: string }
  const name = code ?? 'ConnectionLost'
  const text = name === 'ECONNREFUSED' ? 'the store does not answer' : `the connection to the store broke: ${message}`
  return new StoreFailure(name, text, { cause, isTransient: true })
}

/** Reads an answer whole as a text. */
export async function readBody({ message }: StoreAnswer): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of message as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > MAX_TEXT_BYTES) throw new StoreFailure('AnswerTooLong', 'the answer of the store is too long')
  }
  if (!message.complete) throw toFailure(new Error('the answer ended early'))
  return Buffer.concat(chunks).toString()
}
