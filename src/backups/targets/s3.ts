import { Problem } from '../../core/problem'
import { ObjectStore } from '../../storage/object-store/object-store'
import type { StorePatience } from '../../storage/object-store/store-connection'
import { StoreFailure } from '../../storage/object-store/store-failure'
import { parseStoreAddress, type StoreAccess } from '../../storage/object-store/store-settings'
import type { BackupTarget } from './backup-target'
import { targetFailedProblem } from './target-failure'

/** The endpoint and credentials of a store, and how patient its client is. */
export type S3Store = StoreAccess & StorePatience

/**
 * Keeps backups in a bucket of S3 or a compatible store. `url` is `s3://bucket/prefix`; credentials, region and
 * endpoint are by default those of the variables `S3_…` or `AWS_…`. Each request that makes no progress for `stallMs` is
 * sent again; in the end it fails with 504 BACKUP_TARGET_STALLED, and what cannot be read with 502 BACKUP_TARGET_FAILED.
 */
export function createS3Target(url: string, options: S3Store = {}): BackupTarget {
  const { bucket, prefix } = parseStoreAddress(url)
  const store = new ObjectStore(bucket, options)
  const toKey = (path: string) => `${prefix}${path}`
  const addressOf = (path: string) => `s3://${bucket}/${toKey(path)}`.replace(/\/$/, '')

  async function reading<T>(path: string, step: Promise<T>): Promise<T> {
    try {
      return await step
    } catch (cause) {
      throw toReadProblem(addressOf(path), cause)
    }
  }

  return {
    addressOf,
    write: (path, content) => store.upload(toKey(path), content),
    create: (path, bytes) => reading(path, store.put(toKey(path), bytes, { isNew: true })),
    async read(path) {
      const content = await reading(path, store.read(toKey(path)))
      if (!content) return
      const reader = content.getReader()
      return new ReadableStream<Uint8Array>({
        async pull(controller) {
          const { done, value } = await reading(path, reader.read())
          if (done) controller.close()
          else controller.enqueue(value)
        },
        cancel: (reason) => void reader.cancel(reason).catch(() => {}), // nobody reads it any more
      })
    },
    list: (path) => reading(path, listNames(store, toFolder(toKey(path)))),
    listSizes: async (path) => (await reading(path, listEntries(store, toFolder(toKey(path))))).sizes,
    removeFile: (path) => reading(path, store.remove(toKey(path))),
    probe: async () => void (await reading('', store.list(prefix, { delimiter: '/', limit: 1 }))),
    removeFolder: (path) => reading(path, removeAll(store, `${toKey(path)}/`)),
  }
}

/** Returns the names directly below a folder, and how many of them are folders. Files have sizes (bytes). */
async function listEntries(store: ObjectStore, folder: string) {
  const sizes = new Map<string, number | undefined>()
  let folderCount = 0
  for await (const { objects, folders } of store.listAll(folder, { delimiter: '/' })) {
    for (const { key, size } of objects) sizes.set(firstPart(key.slice(folder.length)), size)
    for (const name of folders) sizes.set(firstPart(name.slice(folder.length)), undefined)
    folderCount += folders.length
  }
  sizes.delete('')
  return { sizes, folderCount }
}

async function listNames(store: ObjectStore, folder: string): Promise<string[]> {
  const { sizes, folderCount } = await listEntries(store, folder)
  const names = new Set(sizes.keys())
  // Some stores do not tell folders that contain only folders.
  if (!folderCount)
    for await (const { objects } of store.listAll(folder))
      for (const { key } of objects) names.add(firstPart(key.slice(folder.length)))
  names.delete('')
  return [...names].sort()
}

async function removeAll(store: ObjectStore, prefix: string) {
  for await (const { objects } of store.listAll(prefix)) for (const { key } of objects) await store.remove(key)
}

const toFolder = (key: string) => (key && !key.endsWith('/') ? `${key}/` : key)
const firstPart = (path: string) => path.split('/')[0]!

function toReadProblem(address: string, cause: unknown): Problem {
  if (cause instanceof Problem) return cause
  if (cause instanceof StoreFailure && cause.code === 'StoreStalled')
    return new Problem(504, 'BACKUP_TARGET_STALLED', `${address}: ${cause.message}`, { cause })
  return targetFailedProblem(address, 'read', cause as Error)
}
