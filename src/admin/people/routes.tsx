import { createRoute, lazyRouteComponent, Navigate } from '@tanstack/react-router'
import { frameRoute } from '../frame/frame-route'

const people = createRoute({
  getParentRoute: () => frameRoute,
  path: 'people',
  component: () => <Navigate to="/people/users" replace />,
})
const users = createRoute({
  getParentRoute: () => frameRoute,
  path: 'people/users',
  component: lazyRouteComponent(() => import('./users'), 'Users'),
})
const newUser = createRoute({
  getParentRoute: () => users,
  path: 'new',
  component: lazyRouteComponent(() => import('./new-user-panel'), 'NewUserPanel'),
})
const user = createRoute({
  getParentRoute: () => users,
  path: '$user',
  component: lazyRouteComponent(() => import('./user-panel'), 'UserPanel'),
})
const workspaces = createRoute({
  getParentRoute: () => frameRoute,
  path: 'people/workspaces',
  component: lazyRouteComponent(() => import('./workspaces'), 'Workspaces'),
})
const newWorkspace = createRoute({
  getParentRoute: () => workspaces,
  path: 'new',
  component: lazyRouteComponent(() => import('./new-workspace-panel'), 'NewWorkspacePanel'),
})
const workspace = createRoute({
  getParentRoute: () => workspaces,
  path: '$workspace',
  component: lazyRouteComponent(() => import('./workspace-panel'), 'WorkspacePanel'),
})
const roles = createRoute({
  getParentRoute: () => frameRoute,
  path: 'people/roles',
  component: lazyRouteComponent(() => import('./roles'), 'Roles'),
})

/** The routes of users, roles and workspaces. */
export const peopleRoutes = [
  people,
  users.addChildren([newUser, user]),
  workspaces.addChildren([newWorkspace, workspace]),
  roles,
] as const
