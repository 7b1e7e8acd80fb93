import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { frameRoute } from '../frame/frame-route'

const lambdas = createRoute({
  getParentRoute: () => frameRoute,
  path: 'automation/lambdas',
  component: lazyRouteComponent(() => import('./lambdas/lambdas'), 'Lambdas'),
})
const newLambda = createRoute({
  getParentRoute: () => frameRoute,
  path: 'automation/lambdas/new',
  component: lazyRouteComponent(() => import('./lambdas/new-lambda'), 'NewLambda'),
})
const lambda = createRoute({
  getParentRoute: () => frameRoute,
  path: 'automation/lambdas/$id',
  component: lazyRouteComponent(() => import('./lambdas/lambda'), 'LambdaScreen'),
})
const integrations = createRoute({
  getParentRoute: () => frameRoute,
  path: 'automation/integrations',
  component: lazyRouteComponent(() => import('./integrations/integrations'), 'Integrations'),
})
const newIntegration = createRoute({
  getParentRoute: () => frameRoute,
  path: 'automation/integrations/new',
  component: lazyRouteComponent(() => import('./integrations/new-integration'), 'NewIntegration'),
})
const integration = createRoute({
  getParentRoute: () => frameRoute,
  path: 'automation/integrations/$id',
  component: lazyRouteComponent(() => import('./integrations/integration'), 'IntegrationScreen'),
})
const connections = createRoute({
  getParentRoute: () => frameRoute,
  path: 'automation/connections',
  component: lazyRouteComponent(() => import('./connections/connections'), 'Connections'),
})
const newConnection = createRoute({
  getParentRoute: () => connections,
  path: 'new',
  component: lazyRouteComponent(() => import('./connections/connection-panel'), 'NewConnectionPanel'),
})
const connection = createRoute({
  getParentRoute: () => connections,
  path: '$id',
  component: lazyRouteComponent(() => import('./connections/connection-panel'), 'ConnectionPanel'),
})
const plugins = createRoute({
  getParentRoute: () => frameRoute,
  path: 'automation/plugins',
  component: lazyRouteComponent(() => import('./plugins/plugins'), 'Plugins'),
})
const newPlugin = createRoute({
  getParentRoute: () => frameRoute,
  path: 'automation/plugins/new',
  component: lazyRouteComponent(() => import('./plugins/new-plugin'), 'NewPlugin'),
})
const plugin = createRoute({
  getParentRoute: () => frameRoute,
  path: 'automation/plugins/$id',
  component: lazyRouteComponent(() => import('./plugins/plugin'), 'PluginScreen'),
})
const events = createRoute({
  getParentRoute: () => frameRoute,
  path: 'automation/events',
  component: lazyRouteComponent(() => import('./events/events'), 'Events'),
})
const event = createRoute({
  getParentRoute: () => events,
  path: '$id',
  component: lazyRouteComponent(() => import('./events/event-panel'), 'EventPanel'),
})

/** The routes of what happens by itself. */
export const automationRoutes = [
  ...[lambdas, newLambda, lambda],
  ...[integrations, newIntegration, integration],
  connections.addChildren([newConnection, connection]),
  ...[plugins, newPlugin, plugin],
  events.addChildren([event]),
] as const
