import { ownerDeletedHandlers } from '../accounts/owner-deleted'
import { defineArea } from '../jobs/area'
import { storedBytes, useMeasures } from '../limits/quota-use'
import { settingsShapes, toShapes } from '../platform/settings/tenant-settings'
import { removeUnusedContents, sumContentBytes } from './contents'
import { removeOldDrafts } from './drafts'
import { fileSettings } from './file-settings'
import { countFiles, deleteOwnerFiles } from './files'
import { fileRoutes } from './routes'

/** Files that users upload. */
export const files = defineArea({
  name: 'files',
  routes: fileRoutes,
  housekeeping: { 'unused file contents': removeUnusedContents, 'old file drafts': removeOldDrafts },
  provides: [
    settingsShapes.provide(toShapes(fileSettings)),
    useMeasures.provide({ files: countFiles }),
    storedBytes.provide([sumContentBytes]),
    ownerDeletedHandlers.provide([deleteOwnerFiles]),
  ],
})
