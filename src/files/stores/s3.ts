import { S3Client, type S3Options } from 'bun'
import { type ContentStore, requireContentHash } from '../../backups/contents/content-store'
import { Problem } from '../../core/problem'

const PART_BYTES = 8 << 20

/**
 * Keeps contents in a bucket of S3 or a compatible store, as `<prefix>/<tenant>/<hash>`. `url` is `s3://bucket/prefix`;
 * credentials, region and endpoint are by default those of Bun's variables (`S3_…` or `AWS_…`).
 */
export function createS3Store(url: string, options: S3Options = {}): ContentStore {
  const { host: bucket, pathname } = new URL(url)
  const prefix = pathname.replace(/^\/+|\/+$/g, '')
  const client = new S3Client({ ...options, bucket })
  const toKey = (tenant: string, name: string) => [prefix, tenant, name].filter(Boolean).join('/')
  const fileOf = (tenant: string, sha256: string) => client.file(toKey(tenant, requireContentHash(sha256)))

  async function write(tenant: string, sha256: string, content: Blob, size: number) {
    const file = fileOf(tenant, sha256)
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

  async function open(tenant: string, sha256: string) {
    const file = fileOf(tenant, sha256)
    return (await file.exists().catch(throwUnavailable)) ? file : undefined
  }

  return {
    open,
    has: async (tenant, sha256) => fileOf(tenant, sha256).exists().catch(throwUnavailable),
    put: (tenant, sha256, draft) => write(tenant, sha256, Bun.file(draft), Bun.file(draft).size),
    async copy(from, to, sha256) {
      const source = await open(from, sha256)
      if (!source) return false
      await write(to, sha256, source, (await source.stat().catch(throwUnavailable)).size)
      return true
    },
    remove: async (tenant, sha256) => fileOf(tenant, sha256).delete().catch(throwUnavailable),
  }
}

function throwUnavailable(cause: unknown): never {
  const message = 'The store of the files cannot be reached. Try again later.'
  throw new Problem(503, 'FILE_STORE_UNAVAILABLE', message, { cause, headers: { 'retry-after': '10' } })
}
