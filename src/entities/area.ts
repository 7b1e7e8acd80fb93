import { entityStore } from '../blueprints/entity-store'
import { defineArea } from '../jobs/area'
import { useMeasures } from '../limits/quota-use'
import { entityCounter } from '../workspaces/workspaces'
import { resumeAlteration } from './alteration/runner'
import { surveyChange } from './alteration/schema-survey'
import { hasEntities, removeAll } from './blueprint-removal'
import * as changeLog from './changes/change-log'
import { closeAllStreams } from './changes/feed'
import { changeRoutes } from './changes/routes'
import { removeUnusedTracking } from './changes/tracked-changes'
import { chartRoutes } from './charts/routes'
import { removeOldVersions } from './history/retention'
import { historyRoutes } from './history/routes'
import { resumeIndexing } from './indexing/index-builder'
import { retireUnusedIndexes } from './indexing/index-demand'
import { entityRoutes } from './routes'
import { countAllEntities } from './total-count'
import { transferRoutes } from './transfer/routes'
import { isImporting, undoAbandonedImports, undoAllAbandonedImports } from './transfer/undo-journal'
import { countInWorkspace } from './workspace-count'

/** The entities area: the data of blueprints, with its queries, writes, alterations, transfers and change streams. */
export const entities = defineArea({
  name: 'entities',
  // Fixed paths come before paths that end with an identifier.
  routes: [...transferRoutes, changeRoutes, historyRoutes, entityRoutes, chartRoutes],
  housekeeping: {
    'old entity changes': changeLog.removeOld,
    'old entity versions': removeOldVersions,
    'unused change tracking': removeUnusedTracking,
    'abandoned imports': undoAllAbandonedImports,
    'unused indexes': retireUnusedIndexes,
  },
  provides: [
    entityStore.provide({
      hasEntities,
      removeAll,
      undoAbandonedImports,
      isImporting,
      surveyChange,
      resumeAlteration,
      resumeIndexing,
    }),
    entityCounter.provide(countInWorkspace),
    useMeasures.provide({ entities: countAllEntities }),
  ],
  start: () => ({ stop: closeAllStreams }),
})
