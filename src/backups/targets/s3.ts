import { S3Client } from 'bun'
import { Problem } from '../../core/problem'
import type { BackupTarget } from './backup-target'

const PART_BYTES = 8 << 20
const STALL_MS = 60_000 // an upload that makes no progress for so long has failed

/**
 * Keeps backups in a bucket of S3 or a compatible store. `url` is `s3://bucket/prefix`; credentials, region and
 * endpoint are those of Bun's variables (`S3_…` or `AWS_…`).
 */
export function createS3Target(url: string): BackupTarget {
  const { host: bucket, pathname } = new URL(url)
  const prefix = pathname.replace(/^\/+|\/+$/g, '')
  const client = new S3Client({ bucket })
  const toKey = (path: string) => [prefix, path].filter(Boolean).join('/')

  async function* listPages(options: { prefix: string; delimiter?: string }) {
    for (let continuationToken: string | undefined; ; ) {
      const page = await client.list({ ...options, continuationToken })
      yield page
      continuationToken = page.isTruncated ? page.nextContinuationToken : undefined
      if (!continuationToken) return
    }
  }

  return {
    addressOf: (path) => `s3://${bucket}/${toKey(path)}`,
    async write(path, content) {
      const writer = client.file(toKey(path)).writer({ partSize: PART_BYTES, queueSize: 2, retry: 3 })
      try {
        for await (const chunk of content) await requireProgress(writer.write(chunk), writer.flush())
        await requireProgress(writer.end())
      } catch (error) {
        // Without its end the upload leaves no file.
        await Promise.resolve(writer.end(error as Error)).catch(() => {})
        throw error
      }
    },
    async read(path) {
      const file = client.file(toKey(path))
      return (await file.exists()) ? file.stream() : undefined
    },
    async list(path) {
      const key = toKey(path)
      const start = key && `${key}/`
      const names = new Set<string>()
      for await (const { contents = [], commonPrefixes = [] } of listPages({ prefix: start, delimiter: '/' }))
        for (const found of [...contents.map(({ key }) => key), ...commonPrefixes.map(({ prefix }) => prefix)])
          names.add(firstPart(found.slice(start.length)))
      // Some stores do not tell folders that contain only folders.
      if (!names.size)
        for await (const { contents = [] } of listPages({ prefix: start }))
          for (const { key } of contents) names.add(firstPart(key.slice(start.length)))
      return [...names].filter(Boolean).sort()
    },
    async probe() {
      await listPages({ prefix: prefix && `${prefix}/`, delimiter: '/' }).next()
    },
    removeFile: (path) => client.delete(toKey(path)),
    async removeFolder(path) {
      for await (const { contents = [] } of listPages({ prefix: `${toKey(path)}/` }))
        for (const { key } of contents) await client.delete(key)
    },
  }
}

const firstPart = (path: string) => path.split('/')[0]!

async function requireProgress(...steps: (Promise<unknown> | unknown)[]) {
  const stalled = Promise.withResolvers<never>()
  const fail = () => stalled.reject(new Problem(504, 'BACKUP_TARGET_STALLED', 'The store took no data for a minute.'))
  const timer = setTimeout(fail, STALL_MS)
  try {
    await Promise.race([Promise.all(steps), stalled.promise])
  } finally {
    clearTimeout(timer)
  }
}
