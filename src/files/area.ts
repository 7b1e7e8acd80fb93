import { ownerDeletedHandlers } from '../accounts/owner-deleted'
import { openContentStore } from '../backups/contents/content-store'
import { entityFormReceiver } from '../entities/form'
import { fileStore } from '../entities/write/file-values'
import { defineArea } from '../jobs/area'
import { storedBytes, useMeasures } from '../limits/quota-use'
import { settingsShapes, toShapes } from '../platform/settings/tenant-settings'
import { findReadableFiles } from './access'
import { removeUnusedContents, sumContentBytes } from './contents'
import { startContentRemoval } from './deleted-contents'
import { removeOldDrafts } from './drafts'
import { receiveEntityForm } from './entity-uploads'
import { fileSettings } from './file-settings'
import { countFiles } from './files'
import { fileRoutes } from './routes'
import { contentStore } from './stores/index'
import { claimFiles, deleteOwnerFiles, removeUnusedFiles } from './unused-files'

/** Files that users upload. */
export const files = defineArea({
  name: 'files',
  routes: fileRoutes,
  housekeeping: {
    'unused files': removeUnusedFiles,
    'unused file contents': removeUnusedContents,
    'old file drafts': removeOldDrafts,
  },
  provides: [
    settingsShapes.provide(toShapes(fileSettings)),
    openContentStore.provide(contentStore),
    useMeasures.provide({ files: countFiles }),
    storedBytes.provide([sumContentBytes]),
    entityFormReceiver.provide(receiveEntityForm),
    fileStore.provide({ findReadableFiles, claimFiles }),
    ownerDeletedHandlers.provide([deleteOwnerFiles]),
  ],
  start: () => startContentRemoval(),
})
