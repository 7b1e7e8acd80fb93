import { Elysia } from 'elysia'
import { entityStore } from '../blueprints/entity-store'
import { defineArea } from '../jobs/area'
import { entityCounter } from '../workspaces/workspaces'
import { resumeAlteration } from './alteration/runner'
import { surveyChange } from './alteration/schema-survey'
import * as changeLog from './changes/change-log'
import { closeAllStreams } from './changes/feed'
import { changeRoutes } from './changes/routes'
import { chartRoutes } from './charts/routes'
import { hasEntities, removeAll } from './entities'
import { entityRoutes } from './routes'
import { transferRoutes } from './transfer/routes'
import { isImporting, undoAbandonedImports, undoAllAbandonedImports } from './transfer/undo-journal'
import { countInWorkspace } from './workspace-count'

/** Entities: the data of blueprints, how it is queried, written, changed, transferred and watched. */
export const entities = defineArea({
  name: 'entities',
  // Fixed paths stand before those that end with an identifier.
  routes: new Elysia().use(transferRoutes).use(changeRoutes).use(entityRoutes).use(chartRoutes),
  housekeeping: { 'old entity changes': changeLog.removeOld, 'abandoned imports': undoAllAbandonedImports },
  provides: [
    entityStore.provide({ hasEntities, removeAll, undoAbandonedImports, isImporting, surveyChange, resumeAlteration }),
    entityCounter.provide(countInWorkspace),
  ],
  start: () => ({ stop: closeAllStreams }),
})
