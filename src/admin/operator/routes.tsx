import { createRoute, lazyRouteComponent, Navigate } from '@tanstack/react-router'
import { rootRoute } from '../frame/frame-route'

const operator = createRoute({
  getParentRoute: () => rootRoute,
  path: 'operator',
  // The server decides whether this page may be at its host, and separates it from other pages.
  beforeLoad: () => {
    if (!document.getElementById('root')?.hasAttribute('data-operator')) location.reload()
  },
  component: lazyRouteComponent(() => import('./operator-frame'), 'OperatorFrame'),
})
const index = createRoute({
  getParentRoute: () => operator,
  path: '/',
  component: () => <Navigate to="/operator/tenants" replace />,
})
const tenants = createRoute({
  getParentRoute: () => operator,
  path: 'tenants',
  component: lazyRouteComponent(() => import('./tenants'), 'Tenants'),
})
// The id of a tenant may be "new", so the form has a longer address.
const newTenant = createRoute({
  getParentRoute: () => tenants,
  path: 'create/new',
  component: lazyRouteComponent(() => import('./new-tenant-panel'), 'NewTenantPanel'),
})
const tenant = createRoute({
  getParentRoute: () => tenants,
  path: '$tenant',
  component: lazyRouteComponent(() => import('./tenant-panel'), 'TenantPanel'),
})
const health = createRoute({
  getParentRoute: () => operator,
  path: 'health',
  component: lazyRouteComponent(() => import('./health'), 'Health'),
})
const certificates = createRoute({
  getParentRoute: () => operator,
  path: 'certificates',
  component: lazyRouteComponent(() => import('./certificates'), 'Certificates'),
})
const tokens = createRoute({
  getParentRoute: () => operator,
  path: 'tokens',
  component: lazyRouteComponent(() => import('./tokens'), 'Tokens'),
})
const newToken = createRoute({
  getParentRoute: () => tokens,
  path: 'create/new',
  component: lazyRouteComponent(() => import('./new-token-panel'), 'NewTokenPanel'),
})
const token = createRoute({
  getParentRoute: () => tokens,
  path: '$token',
  component: lazyRouteComponent(() => import('./token-panel'), 'TokenPanel'),
})
const settings = createRoute({
  getParentRoute: () => operator,
  path: 'settings',
  component: lazyRouteComponent(() => import('./installation-settings'), 'InstallationSettings'),
})
const log = createRoute({
  getParentRoute: () => operator,
  path: 'log',
  component: lazyRouteComponent(() => import('./log'), 'Log'),
})
const events = createRoute({
  getParentRoute: () => operator,
  path: 'events',
  component: lazyRouteComponent(() => import('./operator-events'), 'OperatorEvents'),
})

/** The routes of the operator, who runs the installation. */
export const operatorRoutes = [
  operator.addChildren([
    index,
    tenants.addChildren([newTenant, tenant]),
    health,
    certificates,
    tokens.addChildren([newToken, token]),
    settings,
    log,
    events,
  ]),
] as const
