import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { frameRoute } from '../frame/frame-route'

// No entity has the identifier "all".
const importScreen = createRoute({
  getParentRoute: () => frameRoute,
  path: 'data/$blueprint/all/import',
  component: lazyRouteComponent(() => import('./import-screen'), 'ImportScreen'),
})

const blueprintFromFile = createRoute({
  getParentRoute: () => frameRoute,
  path: 'blueprints/import',
  component: lazyRouteComponent(() => import('./blueprint-from-file'), 'BlueprintFromFile'),
})

/** The routes of imports. */
export const transferRoutes = [importScreen, blueprintFromFile] as const
