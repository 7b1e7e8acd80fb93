import { S3Client, type S3Options } from 'bun'
import { type ContentStore, isContentName, requireContentName } from '../../backups/contents/content-store'
import { Problem } from '../../core/problem'

const PART_BYTES = 8 << 20
const KEYS_PER_PAGE = 100

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
 * credentials, region and endpoint are by default those of Bun's variables (`S3_…` or `AWS_…`).
 */
export function createS3Store(url: string, options: S3Options = {}): S3ContentStore {
  const { host: bucket, pathname } = new URL(url)
  const prefix = pathname.replace(/^\/+|\/+$/g, '')
  const client = new S3Client({ ...options, bucket })
  const toKey = (...names: string[]) => [prefix, ...names].filter(Boolean).join('/')
  const fileOf = (tenant: string, name: string) => client.file(toKey(tenant, requireContentName(name)))

  async function write(tenant: string, name: string, content: Blob, size: number) {
    const file = fileOf(tenant, name)
    const writer = file.writer({ partSize: PART_BYTES, queueSize: 2, retry: 3, type: 'application/octet-stream' })
    try {
      for await (const chunk of content.stream()) {
        await writer.write(chunk)
        await writer.flush()
      }
      await writer.end()
      if ((await file.stat()).size !== size) throw new Error(`The store has another size of ${file.name}.`)
    } catch (error) {
      // Without its end the upload leaves no file.
      await Promise.resolve(writer.end(error as Error)).catch(() => {})
      throwUnavailable(error)
    }
  }

  async function open(tenant: string, name: string) {
    const file = fileOf(tenant, name)
    return (await file.exists().catch(throwUnavailable)) ? file : undefined
  }

  return {
    open,
    has: async (tenant, name) => fileOf(tenant, name).exists().catch(throwUnavailable),
    put: (tenant, name, draft) => write(tenant, name, Bun.file(draft), Bun.file(draft).size),
    async copy(from, to, name) {
      const source = await open(from, name)
      if (!source) return false
      await write(to, name, source, (await source.stat().catch(throwUnavailable)).size)
      return true
    },
    remove: async (tenant, name) => fileOf(tenant, name).delete().catch(throwUnavailable),
    async removePage(tenant, after) {
      const folder = `${toKey(tenant)}/` // with the slash: "ab" is not a part of "a"
      const options = { prefix: folder, maxKeys: KEYS_PER_PAGE, ...(after && { startAfter: folder + after }) }
      const { contents = [], isTruncated } = await client.list(options).catch(throwUnavailable)
      const names = contents.map(({ key }) => key.slice(folder.length))
      // Something else may have been put there, such as backups.
      const own = names.filter(isContentName)
      for (const name of own) await fileOf(tenant, name).delete().catch(throwUnavailable)
      if (!isTruncated) return { removed: own.length, next: undefined }
      // Not every store lists in order, so what is left is listed from the same place again.
      return { removed: own.length, next: own.length ? after : names.at(-1) }
    },
  }
}

/** @throws 503 FILE_STORE_UNAVAILABLE */
export function throwUnavailable(cause: unknown): never {
  const message = 'The store of the files cannot be reached. Try again later.'
  throw new Problem(503, 'FILE_STORE_UNAVAILABLE', message, { cause, headers: { 'retry-after': '10' } })
}
