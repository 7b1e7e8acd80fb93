import { createRoute, lazyRouteComponent, Navigate } from '@tanstack/react-router'
import { frameRoute } from '../frame/frame-route'

const settings = createRoute({
  getParentRoute: () => frameRoute,
  path: 'settings',
  component: () => <Navigate to="/settings/general" replace />,
})
const general = createRoute({
  getParentRoute: () => frameRoute,
  path: 'settings/general',
  component: lazyRouteComponent(() => import('./general'), 'General'),
})

/** The places of settings of the tenant. */
export const settingsRoutes = [settings, general] as const
