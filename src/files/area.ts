import { ownerDeletedHandlers } from '../accounts/owner-deleted'
import { openContentStore } from '../backups/contents/content-store'
import { defineArea } from '../jobs/area'
import { storedBytes, useMeasures } from '../limits/quota-use'
import { removeUnusedContents, sumContentBytes } from './contents'
import { removeOldDrafts } from './drafts'
import { countFiles, deleteOwnerFiles } from './files'
import { fileRoutes } from './routes'
import { contentStore } from './stores/index'

/** Files that users upload. */
export const files = defineArea({
  name: 'files',
  routes: fileRoutes,
  housekeeping: { 'unused file contents': removeUnusedContents, 'old file drafts': removeOldDrafts },
  provides: [
    openContentStore.provide(contentStore),
    useMeasures.provide({ files: countFiles }),
    storedBytes.provide([sumContentBytes]),
    ownerDeletedHandlers.provide([deleteOwnerFiles]),
  ],
})
