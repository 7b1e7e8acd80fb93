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
  const fileOf = (tenant: string, name: string) => client.file([prefix, tenant, name].filter(Boolean).join('/'))
  return {
    has: (tenant, name) => fileOf(tenant, name).exists().catch(throwUnavailable),
    async put(tenant, name, draft) {
      const [local, file] = [Bun.file(draft), fileOf(tenant, name)]
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
    async open(tenant, name) {
      const file = fileOf(tenant, name)
      return (await file.exists().catch(throwUnavailable)) ? file : undefined
    },
    remove: (tenant, name) => fileOf(tenant, name).delete().catch(throwUnavailable),
  }
}

/** @throws 503 FILE_STORE_UNAVAILABLE */
export function throwUnavailable(cause: unknown): never {
  const message = 'The store of the files cannot be reached. Try again later.'
  throw new Problem(503, 'FILE_STORE_UNAVAILABLE', message, { cause, headers: { 'retry-after': '10' } })
}
