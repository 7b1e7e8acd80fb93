import type { ContentStore } from '../../backups/contents/content-store'
import { config } from '../../config'
import { createFolderStore, folderStore } from './folder'
import { createS3Store } from './s3'

let s3Store: { url: string; store: ContentStore } | undefined

/** Returns the store that the settings choose. A tenant that is being made in a folder gets its contents there. */
export function contentStore(stagedFolder?: string): ContentStore {
  const url = config.ATOLL_FILES_URL
  if (!url) return stagedFolder === undefined ? folderStore : createFolderStore(() => stagedFolder)
  if (s3Store?.url !== url) s3Store = { url, store: createS3Store(url) }
  return s3Store.store
}
