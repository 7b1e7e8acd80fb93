import { defineArea } from '../jobs/area'
import { useMeasures } from '../limits/quota-use'
import { workspaceNameSources } from '../workspaces/restrictions'
import { countBlueprints } from './blueprints'
import { upgradeIndexKeys } from './key-upgrade'
import { blueprintRoutes } from './routes'
import { listWorkspaceNames } from './warnings'

/** Blueprints: the fields, permissions and limitations of entities. */
export const blueprints = defineArea({
  name: 'blueprints',
  routes: [blueprintRoutes],
  housekeeping: { 'index keys of earlier versions': upgradeIndexKeys },
  provides: [workspaceNameSources.provide([listWorkspaceNames]), useMeasures.provide({ blueprints: countBlueprints })],
})
