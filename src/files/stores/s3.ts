import {
  type Content,
  type ContentStore,
  isContentName,
  requireContentName,
} from '../../backups/contents/content-store'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import { ObjectStore, type StoredObject } from '../../storage/object-store/object-store'
import type { StorePatience } from '../../storage/object-store/store-connection'
import { parseStoreAddress, type StoreAccess } from '../../storage/object-store/store-settings'

const KEYS_PER_PAGE = 100
// Somebody waits for the answer, and gets 503 with a time to come back.
const STORE_PATIENCE: StorePatience = { stallMs: 10_000, retryDelaysMs: [200, 600, 1_800] }

/** A store that also keeps what deleted tenants left, because no folder of theirs is moved away. */
export type S3ContentStore = ContentStore & {
  /**
   * Removes some contents of a tenant, of those after a name. Returns how many, and after which name to go on; undefined
   * when there are no more.
   */
  removePage(tenant: string, after: string): Promise<{ removed: number; next: string | undefined }>
}

/**
 * Keeps contents in a bucket of S3 or a compatible store, as `<prefix>/<tenant>/<hash>`. `url` is `s3://bucket/prefix`;
 * credentials, region and endpoint are by default those of the variables `S3_…` or `AWS_…`.
 */
export function createS3Store(url: string, options: StoreAccess & StorePatience = {}): S3ContentStore {
  const { bucket, prefix } = parseStoreAddress(url)
  const store = new ObjectStore(bucket, { ...STORE_PATIENCE, ...options })
  const keyOf = (tenant: string, name: string) => `${prefix}${tenant}/${requireContentName(name)}`

  async function write(tenant: string, name: string, content: Content) {
    const key = keyOf(tenant, name)
    await store.upload(key, content.stream() as unknown as AsyncIterable<Uint8Array>).catch(throwUnavailable)
    const stored = await store.find(key).catch(throwUnavailable)
    if (stored?.size === content.size) return
    // It would be taken for the content.
    await store.remove(key).catch(throwUnavailable)
    throwUnavailable(new Error(`The store has ${stored?.size ?? 'no'} bytes of ${key} instead of ${content.size}.`))
  }

  async function open(tenant: string, name: string): Promise<Content | undefined> {
    const found = await store.find(keyOf(tenant, name)).catch(throwUnavailable)
    return found && new StoredContent(store, found, 0, found.size)
  }

  return {
    open,
    async has(tenant, name, size) {
      const found = await store.find(keyOf(tenant, name)).catch(throwUnavailable)
      return !!found && (size === undefined || found.size === size)
    },
    put: (tenant, name, draft) => write(tenant, name, Bun.file(draft)),
    async copy(from, to, name) {
      const source = await open(from, name)
      if (!source) return false
      await write(to, name, source)
      return true
    },
    remove: async (tenant, name) => store.remove(keyOf(tenant, name)).catch(throwUnavailable),
    async removePage(tenant, after) {
      const folder = `${prefix}${tenant}/` // with the slash: "ab" is not a part of "a"
      const options = { limit: KEYS_PER_PAGE, ...(after && { startAfter: folder + after }) }
      const { objects, next } = await store.list(folder, options).catch(throwUnavailable)
      const names = objects.map(({ key }) => key.slice(folder.length))
      // Something else may have been put there, such as backups.
      const own = names.filter(isContentName)
      for (const name of own) await store.remove(keyOf(tenant, name)).catch(throwUnavailable)
      if (!next) return { removed: own.length, next: undefined }
      // Not every store lists in order, so what is left is listed from the same place again.
      return { removed: own.length, next: own.length ? after : names.at(-1) }
    },
  }
}

/** A part of an object, which is read only when it is streamed. */
class StoredContent implements Content {
  constructor(
    private store: ObjectStore,
    private object: StoredObject,
    private start: number,
    private end: number,
  ) {}

  get size() {
    return this.end - this.start
  }

  slice(start = 0, end = this.size) {
    const first = Math.min(this.end, this.start + start)
    return new StoredContent(this.store, this.object, first, Math.max(first, Math.min(this.end, this.start + end)))
  }

  stream() {
    const { store, object, start, end } = this
    let reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined
    return new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        const range = start || end < object.size ? { start, end } : undefined
        reader ??= ((await store.read(object.key, range)) ?? throwGone(object)).getReader() as unknown as typeof reader
        const { done, value } = await reader!.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => reader?.cancel(reason),
    })
  }

  bytes = () => new Response(this.stream()).bytes() as Promise<Uint8Array<ArrayBuffer>>
  arrayBuffer = () => new Response(this.stream()).arrayBuffer()
  text = () => new Response(this.stream()).text()
}

function throwGone({ key }: StoredObject): never {
  throw new Error(`${key} is not in the store any more.`)
}

const REPORT_INTERVAL_MS = 60_000
let reportedAt = Number.NEGATIVE_INFINITY

/** Every request for a file may meet it, so it is logged at most once a minute. @throws 503 FILE_STORE_UNAVAILABLE */
export function throwUnavailable(cause: unknown): never {
  if (cause instanceof Problem) throw cause
  if (performance.now() > reportedAt + REPORT_INTERVAL_MS) {
    reportedAt = performance.now()
    logError('FILE_STORE_UNAVAILABLE', { cause })
  }
  const message = 'The store of the files cannot be reached. Try again later.'
  throw new Problem(503, 'FILE_STORE_UNAVAILABLE', message, { cause, headers: { 'retry-after': '10' } })
}
