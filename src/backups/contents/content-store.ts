import { slot } from '../../core/extension'
import { Problem } from '../../core/problem'

/** The bytes of a content, or a part of them. */
export type Content = Pick<Blob, 'size' | 'stream' | 'bytes' | 'arrayBuffer' | 'text'> & {
  slice(start?: number, end?: number): Content
}

/**
 * Keeps the contents of files and their thumbnails, by tenant and name. The name of a content is its hash, with which those
 * of its thumbnails begin. @throws 503 FILE_STORE_UNAVAILABLE when the store fails
 */
export interface ContentStore {
  /** Tells whether there is a content, with `size` whether it has so many bytes: a torn one counts as missing. */
  has(tenant: string, name: string, size?: number): Promise<boolean>
  /** Takes the content of a draft, a complete local file on the disk of the tenant's folder, which may be moved. */
  put(tenant: string, name: string, draft: string): Promise<void>
  /** Returns the content, which is read only when it is streamed; undefined when there is none. */
  open(tenant: string, name: string): Promise<Content | undefined>
  /** Gives a tenant a content that another one has. Returns false when that has none. */
  copy(from: string, to: string, name: string): Promise<boolean>
  remove(tenant: string, name: string): Promise<void>
}

/**
 * Returns the store of the contents of tenants. With a folder in which a tenant is being made, what the store puts into
 * the folder of a tenant goes there.
 */
export const openContentStore = slot<(stagedFolder?: string) => ContentStore>('store of the contents of files')

/** Tells whether a text is a SHA-256 in hex, which can be a part of a path. */
export const isContentHash = (text: string) => /^[0-9a-f]{64}$/.test(text)

/** Tells whether a text is the name of a content or thumbnail. */
export const isContentName = (text: string) => /^[0-9a-f]{64}(\.[\w-]+\.\w+)?$/.test(text)

/** Returns the name of a content or thumbnail, as a part of a path. @throws 404 FILE_CONTENT_MISSING for another text */
export function requireContentName(text: string): string {
  if (isContentName(text)) return text
  throw new Problem(404, 'FILE_CONTENT_MISSING', 'The content of this file is missing. Upload the file again.')
}
