import { S3Client, type S3Options } from 'bun'
import { Problem } from '../../core/problem'
import type { ContentStore } from './content-store'

const PART_BYTES = 8 << 20

/**
 * Keeps contents in a bucket of S3 or a compatible store, as `<prefix>/<tenant>/<hash>`. `url` is `s3://bucket/prefix`;
 * credentials, region and endpoint are by default those of Bun's variables (`S3_…` or `AWS_…`).
 */
export function createS3Store(url: string, options: S3Options = {}): ContentStore {
  const { host: bucket, pathname } = new URL(url)
  const prefix = pathname.replace(/^\/+|\/+$/g, '')
  const client = new S3Client({ ...options, bucket })
  const fileOf = (tenant: string, sha256: string) => client.file([prefix, tenant, sha256].filter(Boolean).join('/'))
  return {
    has: (tenant, sha256) => fileOf(tenant, sha256).exists().catch(throwUnavailable),
    async put(tenant, sha256, draft) {
      const [local, file] = [Bun.file(draft), fileOf(tenant, sha256)]
      const writer = file.writer({ partSize: PART_BYTES, queueSize: 2, retry: 3, type: 'application/octet-stream' })
      try {
        for await (const chunk of local.stream()) {
          await writer.write(chunk)
          await writer.flush()
        }
        await writer.end()
        if ((await file.stat()).size !== local.size) throw new Error(`The store has another size of ${file.name}.`)
      } catch (error) {
        // Without its end the upload leaves no file.
        await Promise.resolve(writer.end(error as Error)).catch(() => {})
        throwUnavailable(error)
      }
    },
    async open(tenant, sha256) {
      const file = fileOf(tenant, sha256)
      return (await file.exists().catch(throwUnavailable)) ? file : undefined
    },
    remove: (tenant, sha256) => fileOf(tenant, sha256).delete().catch(throwUnavailable),
  }
}

function throwUnavailable(cause: unknown): never {
  const message = 'The store of the files cannot be reached. Try again later.'
  throw new Problem(503, 'FILE_STORE_UNAVAILABLE', message, { cause, headers: { 'retry-after': '10' } })
}
