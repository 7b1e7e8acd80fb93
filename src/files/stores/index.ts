import type { ContentStore } from '../../backups/contents/content-store'
import { config } from '../../config'
import { createFolderStore, folderStore } from './folder'
import { createS3Store, type S3ContentStore } from './s3'

let s3Store: { url: string; store: S3ContentStore } | undefined

/** Returns the store that the settings choose. A tenant that is being made in a folder gets its contents there. */
export function contentStore(stagedFolder?: string): ContentStore {
  const store = s3ContentStore()
  if (store) return store
  return stagedFolder === undefined ? folderStore : createFolderStore(() => stagedFolder)
}

/** Returns the store that speaks S3, or undefined when contents are in the folders of the tenants. */
export function s3ContentStore(): S3ContentStore | undefined {
  const url = config.ATOLL_FILES_URL
  if (!url) return
  if (s3Store?.url !== url) s3Store = { url, store: createS3Store(url) }
  return s3Store.store
}
