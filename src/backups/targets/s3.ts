import { S3Client, type S3Options } from 'bun'
import { Problem } from '../../core/problem'
import type { BackupTarget } from './backup-target'
import { targetFailedProblem } from './target-failure'

const PART_BYTES = 8 << 20
const STALL_MS = 180_000 // a step has failed after so long; the longest one stores a part, at 47 kB/s

/** The endpoint and credentials of a store, and after how many ms without progress a step fails. */
export type S3Store = Pick<S3Options, 'endpoint' | 'accessKeyId' | 'secretAccessKey' | 'region'> & { stallMs?: number }

/**
 * Keeps backups in a bucket of S3 or a compatible store. `url` is `s3://bucket/prefix`; credentials, region and
 * endpoint are by default those of Bun's variables (`S3_…` or `AWS_…`). Each step that makes no progress for `stallMs` fails with
 * 504 BACKUP_TARGET_STALLED, and what cannot be read with 502 BACKUP_TARGET_FAILED.
 */
export function createS3Target(url: string, { stallMs = STALL_MS, ...store }: S3Store = {}): BackupTarget {
  const { host: bucket, pathname } = new URL(url)
  const prefix = pathname.replace(/^\/+|\/+$/g, '')
  const client = new S3Client({ bucket, ...store })
  const toKey = (path: string) => [prefix, path].filter(Boolean).join('/')
  const addressOf = (path: string) => `s3://${bucket}/${toKey(path)}`
  const within = <T>(step: Promise<T> | T) => requireProgress(step, stallMs)

  async function reading<T>(path: string, step: Promise<T>): Promise<T> {
    try {
      return await within(step)
    } catch (cause) {
      if (cause instanceof Problem) throw cause
      throw targetFailedProblem(addressOf(path), 'read', cause as Error)
    }
  }

  async function* listPages(path: string, options: { prefix: string; delimiter?: string }) {
    for (let continuationToken: string | undefined; ; ) {
      const page = await reading(path, client.list({ ...options, continuationToken }))
      yield page
      continuationToken = page.isTruncated ? page.nextContinuationToken : undefined
      if (!continuationToken) return
    }
  }

  return {
    addressOf,
    async write(path, content) {
      const writer = client.file(toKey(path)).writer({ partSize: PART_BYTES, queueSize: 2, retry: 3 })
      try {
        for await (const chunk of content) await within(Promise.all([writer.write(chunk), writer.flush()]))
        await within(writer.end())
      } catch (error) {
        // Without its end the upload leaves no file.
        await within(Promise.resolve(writer.end(error as Error))).catch(() => {})
        throw error
      }
    },
    async read(path) {
      const file = client.file(toKey(path))
      if (!(await reading(path, file.exists()))) return
      const reader = file.stream().getReader()
      return new ReadableStream<Uint8Array>({
        async pull(controller) {
          const { done, value } = await reading(path, reader.read())
          if (done) controller.close()
          else controller.enqueue(value)
        },
        cancel: (reason) => void reader.cancel(reason).catch(() => {}), // nobody reads it any more
      })
    },
    async list(path) {
      const key = toKey(path)
      const start = key && `${key}/`
      const names = new Set<string>()
      for await (const { contents = [], commonPrefixes = [] } of listPages(path, { prefix: start, delimiter: '/' }))
        for (const found of [...contents.map(({ key }) => key), ...commonPrefixes.map(({ prefix }) => prefix)])
          names.add(firstPart(found.slice(start.length)))
      // Some stores do not tell folders that contain only folders.
      if (!names.size)
        for await (const { contents = [] } of listPages(path, { prefix: start }))
          for (const { key } of contents) names.add(firstPart(key.slice(start.length)))
      return [...names].filter(Boolean).sort()
    },
    removeFile: (path) => within(client.delete(toKey(path))),
    async probe() {
      await listPages('', { prefix: prefix && `${prefix}/`, delimiter: '/' }).next()
    },
    async removeFolder(path) {
      for await (const { contents = [] } of listPages(path, { prefix: `${toKey(path)}/` }))
        for (const { key } of contents) await within(client.delete(key))
    },
  }
}

const firstPart = (path: string) => path.split('/')[0]!

async function requireProgress<T>(step: Promise<T> | T, stallMs: number): Promise<T> {
  const stalled = Promise.withResolvers<never>()
  const fail = () =>
    stalled.reject(new Problem(504, 'BACKUP_TARGET_STALLED', 'The store made no progress for three minutes.'))
  const timer = setTimeout(fail, stallMs)
  try {
    return await Promise.race([step, stalled.promise])
  } finally {
    clearTimeout(timer)
  }
}
