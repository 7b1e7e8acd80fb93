import { slot } from '../../core/extension'
import { Problem } from '../../core/problem'

/** Keeps the contents of files, by tenant and hash. @throws 503 FILE_STORE_UNAVAILABLE when the store fails */
export interface ContentStore {
  has(tenant: string, sha256: string): Promise<boolean>
  /** Takes the content of a draft, a complete local file on the disk of the tenant's folder, which may be moved. */
  put(tenant: string, sha256: string, draft: string): Promise<void>
  /** Returns the content, which is read only when it is streamed; undefined when there is none. */
  open(tenant: string, sha256: string): Promise<Blob | undefined>
  /** Gives a tenant a content that another one has. Returns false when that has none. */
  copy(from: string, to: string, sha256: string): Promise<boolean>
  remove(tenant: string, sha256: string): Promise<void>
}

/**
 * Returns the store of the contents of tenants. With a folder in which a tenant is being made, what the store puts into
 * the folder of a tenant goes there.
 */
export const openContentStore = slot<(stagedFolder?: string) => ContentStore>('store of the contents of files')

/** Tells whether a text is a SHA-256 in hex, which can be a part of a path. */
export const isContentHash = (text: string) => /^[0-9a-f]{64}$/.test(text)

/** Returns a hash that can be a part of a path. @throws 404 FILE_CONTENT_MISSING for another text */
export function requireContentHash(text: string): string {
  if (isContentHash(text)) return text
  throw new Problem(404, 'FILE_CONTENT_MISSING', 'The content of this file is missing. Upload the file again.')
}
