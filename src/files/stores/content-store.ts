/** Keeps the contents of files, by tenant and hash. @throws 503 FILE_STORE_UNAVAILABLE when the store fails */
export interface ContentStore {
  has(tenant: string, sha256: string): Promise<boolean>
  /** Takes the content of a draft, a complete local file in the tenant's folder of drafts, which may be moved. */
  put(tenant: string, sha256: string, draft: string): Promise<void>
  /** Returns the content, which is read only when it is streamed; undefined when there is none. */
  open(tenant: string, sha256: string): Promise<Blob | undefined>
  remove(tenant: string, sha256: string): Promise<void>
}
