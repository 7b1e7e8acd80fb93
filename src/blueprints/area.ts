import { defineArea } from '../jobs/area'
import { workspaceNameSources } from '../workspaces/restrictions'
import { blueprintRoutes } from './routes'
import { listWorkspaceNames } from './warnings'

/** Blueprints: the fields, rules and limitations of entities. */
export const blueprints = defineArea({
  name: 'blueprints',
  routes: blueprintRoutes,
  provides: [workspaceNameSources.provide([listWorkspaceNames])],
})
