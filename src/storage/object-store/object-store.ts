import { readBody, type StoreAnswer, StoreConnection, type StorePatience, toFailure } from './store-connection'
import { StoreFailure, storeStalled, toStoreFailure } from './store-failure'
import type { StoreAccess } from './store-settings'
import { readElements, readText } from './store-xml'

/** The size of a part of an upload (bytes); a content that fits in one is sent by a single request. */
export const PART_BYTES = 8 << 20
const MAX_PARTS = 10_000
const PARTS_PER_SIZE = 1_000 // after so many parts, the following ones are twice as large
const TORN_AFTER_MS = 300 // until a store has noticed that a request broke off
const TYPE = { 'content-type': 'application/octet-stream' }

/** A stored object. `etag` has no quotes, which some stores leave out. */
export type StoredObject = { key: string; size: number; etag: string }

/** A page of a list: its objects, the folders below it, and the token of the next page. */
export type ListPage = { objects: StoredObject[]; folders: string[]; next?: string }

/**
 * A bucket of S3 or a compatible store. Every request is signed with the hash of its body and repeated when that may help.
 * A content appears whole or not at all: what breaks off before its end was never completed.
 * @throws StoreFailure
 */
export class ObjectStore {
  #connection: StoreConnection

  constructor(bucket: string, options: StoreAccess & StorePatience = {}) {
    this.#connection = new StoreConnection(bucket, options, options)
  }

  /** Returns an object without its content, or undefined when there is none. */
  find(key: string): Promise<StoredObject | undefined> {
    return this.#connection.exchange({ method: 'HEAD', key, accepts: [404] }, ({ status, headers, message }) => {
      message.resume()
      return status === 404 ? undefined : toObject(key, headers)
    })
  }

  /**
   * Returns the content of an object, or undefined when there is none. A connection that breaks is replaced by one that goes on
   * where it broke, as long as the object is the same.
   */
  async read(key: string, range?: { start: number; end: number }): Promise<ReadableStream<Uint8Array> | undefined> {
    if (range && range.end <= range.start) return new Blob([]).stream()
    const first = await this.#open(key, range)
    return first && this.#follow(key, first, range)
  }

  #open(key: string, range: { start: number; end?: number } | undefined, etag?: string) {
    const headers = {
      ...(range && { range: `bytes=${range.start}-${range.end === undefined ? '' : range.end - 1}` }),
      ...(etag && { 'if-match': `"${etag}"` }),
    }
    return this.#connection.exchange({ method: 'GET', key, headers, accepts: [404] }, async (answer) => {
      if (answer.status !== 404) return answer
      await readBody(answer)
    })
  }

  #follow(key: string, first: StoreAnswer, range?: { start: number; end: number }): ReadableStream<Uint8Array> {
    const { stallMs } = this.#connection
    const etag = readEtag(first.headers)
    let done = 0
    let reader = readChunks(first, stallMs)
    const readOn = () =>
      this.#connection.repeat(async (attempt) => {
        if (attempt) {
          const rest = { start: (range?.start ?? 0) + done, end: range?.end }
          const answer = await this.#open(key, rest, etag)
          if (!answer || (answer.status !== 206 && rest.start) || readEtag(answer.headers) !== etag)
            throw new StoreFailure('ObjectChanged', 'the object was removed or changed while it was read')
          reader = readChunks(answer, stallMs)
        }
        return reader.next()
      })
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value, done: isDone } = await readOn()
        if (isDone) return controller.close()
        done += value.byteLength
        controller.enqueue(value)
      },
      cancel: async () => void (await reader.return(undefined).catch(() => {})), // nobody reads it any more
    })
  }

  /** Stores bytes. With `isNew`, only where there is nothing yet. Returns whether it did. */
  async put(key: string, body: Uint8Array, { isNew = false } = {}): Promise<boolean> {
    const headers = { ...TYPE, ...(isNew && { 'if-none-match': '*' }) }
    const accepts = isNew ? [409, 412] : []
    return this.#connection.exchange({ method: 'PUT', key, headers, body, accepts }, async (answer) => {
      await readBody(answer)
      return answer.status < 300
    })
  }

  /** Stores a content of any size. It appears with its last byte; a content that fails, or that cannot be stored, never does. */
  async upload(key: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    let upload: string | undefined
    const etags: string[] = []
    let size = 0
    try {
      for await (const { part, isLast } of splitParts(content)) {
        if (!upload && isLast) return await this.#putWhole(key, part)
        upload ??= await this.#begin(key)
        if (etags.length === MAX_PARTS)
          throw new StoreFailure('EntityTooLarge', 'the content is too large for the store')
        etags.push(await this.#putPart(key, upload, etags.length + 1, part))
        size += part.byteLength
      }
      await this.#complete(key, upload!, etags, size)
    } catch (error) {
      // What is not completed is no object; stores keep its parts until it is given up.
      if (upload) await this.#abort(key, upload).catch(() => {})
      throw error
    }
  }

  /** A store may keep what it got of a request that broke off, which would be taken for the content. */
  async #putWhole(key: string, body: Uint8Array) {
    try {
      await this.put(key, body)
    } catch (error) {
      await Bun.sleep(TORN_AFTER_MS)
      const stored = await this.find(key).catch(() => undefined) // the failure before is told
      if (stored && stored.size !== body.byteLength) await this.remove(key).catch(() => {}) // as above
      throw error
    }
  }

  #begin(key: string): Promise<string> {
    return this.#connection.exchange({ method: 'POST', key, query: { uploads: '' }, headers: TYPE }, async (answer) => {
      const id = readText(await readBody(answer), 'UploadId')
      if (!id) throw new StoreFailure('MalformedAnswer', 'the store named no upload')
      return id
    })
  }

  #putPart(key: string, uploadId: string, partNumber: number, body: Uint8Array): Promise<string> {
    const query = { partNumber: `${partNumber}`, uploadId }
    return this.#connection.exchange({ method: 'PUT', key, query, body }, async (answer) => {
      await readBody(answer)
      return readEtag(answer.headers)
    })
  }

  async #complete(key: string, uploadId: string, etags: string[], size: number) {
    const parts = etags.map((etag, n) => `<Part><PartNumber>${n + 1}</PartNumber><ETag>"${etag}"</ETag></Part>`)
    const body = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`)
    try {
      await this.#connection.exchange({ method: 'POST', key, query: { uploadId }, body }, async (answer) => {
        const text = await readBody(answer)
        // The status is sent before the store has put the parts together.
        if (readElements(text, 'Error').length || readText(text, 'Code'))
          throw toStoreFailure({ ...answer, status: 500 }, text, undefined)
      })
    } catch (error) {
      // An earlier attempt may have completed it, and only its answer was lost.
      const isGone = error instanceof StoreFailure && error.code === 'NoSuchUpload'
      if (!isGone || (await this.find(key))?.size !== size) throw error
    }
  }

  #abort(key: string, uploadId: string) {
    return this.#connection.exchange({ method: 'DELETE', key, query: { uploadId }, accepts: [404] }, readBody)
  }

  async remove(key: string): Promise<void> {
    await this.#connection.exchange({ method: 'DELETE', key, accepts: [404] }, async (answer) => {
      const text = await readBody(answer)
      if (answer.status === 404 && readText(text, 'Code') === 'NoSuchBucket')
        throw toStoreFailure(answer, text, undefined)
    })
  }

  /** Returns the objects whose keys begin with a prefix; with a delimiter those of one folder. */
  list(
    prefix: string,
    {
      delimiter,
      startAfter,
      limit,
      token,
    }: { delimiter?: string; startAfter?: string; limit?: number; token?: string } = {},
  ): Promise<ListPage> {
    const query = {
      'list-type': '2',
      prefix,
      ...(delimiter && { delimiter }),
      ...(startAfter && { 'start-after': startAfter }),
      ...(limit && { 'max-keys': `${limit}` }),
      ...(token && { 'continuation-token': token }),
    }
    return this.#connection.exchange({ method: 'GET', query }, async (answer) => toPage(await readBody(answer)))
  }

  /** Yields all pages of a list. */
  async *listAll(prefix: string, options: { delimiter?: string } = {}): AsyncGenerator<ListPage> {
    for (let token: string | undefined; ; ) {
      const page: ListPage = await this.list(prefix, { ...options, token })
      yield page
      token = page.next
      if (!token) return
    }
  }
}

const readEtag = (headers: Headers) => (headers.get('etag') ?? '').replaceAll('"', '')

const toObject = (key: string, headers: Headers): StoredObject => ({
  key,
  size: Number(headers.get('content-length') ?? Number.NaN),
  etag: readEtag(headers),
})

function toPage(xml: string): ListPage {
  const isEncoded = readText(xml, 'EncodingType') === 'url'
  const decode = (key: string) => (isEncoded ? decodeURIComponent(key.replaceAll('+', ' ')) : key)
  const next = readText(xml, 'IsTruncated') === 'true' ? readText(xml, 'NextContinuationToken') : undefined
  if (!/<(\w+:)?ListBucketResult/.test(xml)) throw toFailure(new Error('the answer is no list'))
  return {
    objects: readElements(xml, 'Contents').map((entry) => ({
      key: decode(readText(entry, 'Key') ?? ''),
      size: Number(readText(entry, 'Size')),
      etag: (readText(entry, 'ETag') ?? '').replaceAll('"', ''),
    })),
    folders: readElements(xml, 'CommonPrefixes').map((entry) => decode(readText(entry, 'Prefix') ?? '')),
    ...(next && { next }),
  }
}

/** Yields the bytes of an answer. @throws StoreFailure when they end early or stall */
async function* readChunks({ headers, message }: StoreAnswer, stallMs: number): AsyncGenerator<Uint8Array, undefined> {
  const expected = Number(headers.get('content-length') ?? Number.NaN)
  let bytes = 0
  let isStalled = false
  const timer = setTimeout(() => {
    isStalled = true
    message.destroy(storeStalled(stallMs))
  }, stallMs)
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) {
      bytes += chunk.length
      yield chunk
      timer.refresh()
    }
  } catch (cause) {
    throw isStalled ? storeStalled(stallMs) : toFailure(cause)
  } finally {
    clearTimeout(timer)
    message.destroy()
  }
  if (isStalled) throw storeStalled(stallMs)
  if (bytes < expected) throw toFailure(new Error('the answer ended early'))
}

/** Yields a content in parts, and which one is the last; an empty content is one part. */
async function* splitParts(content: AsyncIterable<Uint8Array>) {
  let [chunks, bytes, count, partBytes] = [[] as Uint8Array[], 0, 0, PART_BYTES]
  for await (const chunk of content) {
    for (let rest = chunk; rest.byteLength; ) {
      if (bytes === partBytes) {
        yield { part: Buffer.concat(chunks), isLast: false }
        ;[chunks, bytes] = [[], 0]
        if (++count % PARTS_PER_SIZE === 0) partBytes *= 2
      }
      const taken = rest.subarray(0, partBytes - bytes)
      chunks.push(taken)
      bytes += taken.byteLength
      rest = rest.subarray(taken.byteLength)
    }
  }
  yield { part: Buffer.concat(chunks), isLast: true }
}
