import type { Content } from '../backups/contents/content-store'
import { contentStore } from '../files/stores/index'
import type { StoredContent } from './tables'

/** A larger content is sent from its file. */
const MAX_CONTENT_BYTES = 256 << 10
const MAX_CACHE_BYTES = 64 << 20

/** Contents by tenant, deployment and hash; the one that was used last is at the end. */
const contents = new Map<string, Uint8Array<ArrayBuffer>>()
let cachedBytes = 0

/**
 * Returns a content of a deployment, without a promise when it is in memory; undefined when the store has none.
 * @throws 503 FILE_STORE_UNAVAILABLE
 */
export function readContent(
  tenant: string,
  deployment: string,
  { sha256, size }: StoredContent,
): Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer> | Content | undefined> {
  const key = `${tenant} ${deployment} ${sha256}`
  const cached = contents.get(key)
  if (!cached) return loadContent(tenant, key, { sha256, size })
  if (cachedBytes > MAX_CACHE_BYTES / 2) {
    contents.delete(key)
    contents.set(key, cached)
  }
  return cached
}

async function loadContent(tenant: string, key: string, { sha256, size }: StoredContent) {
  const content = await contentStore().open(tenant, sha256)
  if (!content || size > MAX_CONTENT_BYTES) return content
  const bytes = new Uint8Array(await content.arrayBuffer())
  if (!contents.has(key)) {
    contents.set(key, bytes)
    cachedBytes += bytes.byteLength
  }
  for (const [oldest, { byteLength }] of contents) {
    if (cachedBytes <= MAX_CACHE_BYTES) break
    contents.delete(oldest)
    cachedBytes -= byteLength
  }
  return bytes
}
