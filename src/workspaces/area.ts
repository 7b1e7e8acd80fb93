import { defineArea } from '../jobs/area'
import { allWorkspaceRoutes } from './routes'

/** Workspaces, their members and invitations. */
export const workspaces = defineArea({ name: 'workspaces', routes: allWorkspaceRoutes })
