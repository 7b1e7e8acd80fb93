import { config } from '../../config'
import type { ContentStore } from './content-store'
import { folderStore } from './folder'
import { createS3Store } from './s3'

let s3Store: { url: string; store: ContentStore } | undefined

/** Returns the store that the settings choose. */
export function contentStore(): ContentStore {
  const url = config.ATOLL_FILES_URL
  if (!url) return folderStore
  if (s3Store?.url !== url) s3Store = { url, store: createS3Store(url) }
  return s3Store.store
}
