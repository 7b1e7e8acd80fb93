/** Keeps contents of files and their thumbnails, by tenant and name. The name of a content is its hash, with which those of its thumbnails begin. @throws 503 FILE_STORE_UNAVAILABLE when the store fails */
export interface ContentStore {
  has(tenant: string, name: string): Promise<boolean>
  /** Takes the content of a draft, a complete local file in the tenant's folder of drafts, which may be moved. */
  put(tenant: string, name: string, draft: string): Promise<void>
  /** Returns the content, which is read only when it is streamed; undefined when there is none. */
  open(tenant: string, name: string): Promise<Blob | undefined>
  remove(tenant: string, name: string): Promise<void>
}
