import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { frameRoute } from '../frame/frame-route'

const account = createRoute({
  getParentRoute: () => frameRoute,
  path: 'account',
  component: lazyRouteComponent(() => import('./account'), 'Account'),
})

/** The route of the user's own account. */
export const accountRoutes = [account] as const
