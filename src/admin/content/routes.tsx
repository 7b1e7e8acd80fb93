import { createRoute, lazyRouteComponent, Navigate } from '@tanstack/react-router'
import { frameRoute } from '../frame/frame-route'

const index = createRoute({
  getParentRoute: () => frameRoute,
  path: 'content',
  component: () => <Navigate to="/content/blocks" replace />,
})
const blocks = createRoute({
  getParentRoute: () => frameRoute,
  path: 'content/blocks',
  component: lazyRouteComponent(() => import('./blocks'), 'Blocks'),
})
// No block and no component has the id "new".
const newBlock = createRoute({
  getParentRoute: () => frameRoute,
  path: 'content/blocks/new',
  component: lazyRouteComponent(() => import('./block'), 'NewBlockScreen'),
})
const block = createRoute({
  getParentRoute: () => frameRoute,
  path: 'content/blocks/$id',
  component: lazyRouteComponent(() => import('./block'), 'BlockScreen'),
})
const components = createRoute({
  getParentRoute: () => frameRoute,
  path: 'content/components',
  component: lazyRouteComponent(() => import('./components'), 'Components'),
})
const newComponent = createRoute({
  getParentRoute: () => frameRoute,
  path: 'content/components/new',
  component: lazyRouteComponent(() => import('./component'), 'NewComponentScreen'),
})
const component = createRoute({
  getParentRoute: () => frameRoute,
  path: 'content/components/$id',
  component: lazyRouteComponent(() => import('./component'), 'ComponentScreen'),
})
const site = createRoute({
  getParentRoute: () => frameRoute,
  path: 'content/site',
  component: lazyRouteComponent(() => import('./site/site'), 'Site'),
})
const files = createRoute({
  getParentRoute: () => frameRoute,
  path: 'content/files',
  component: lazyRouteComponent(() => import('./files'), 'Files'),
})
const file = createRoute({
  getParentRoute: () => files,
  path: '$id',
  component: lazyRouteComponent(() => import('./file-panel'), 'FilePanel'),
})
const configurations = createRoute({
  getParentRoute: () => frameRoute,
  path: 'content/configurations',
  component: lazyRouteComponent(() => import('./configurations'), 'Configurations'),
})
// No key of a configuration begins with a dash.
const newConfiguration = createRoute({
  getParentRoute: () => configurations,
  path: '-/new',
  component: lazyRouteComponent(() => import('./new-configuration-panel'), 'NewConfigurationPanel'),
})
const configuration = createRoute({
  getParentRoute: () => configurations,
  path: '$key',
  component: lazyRouteComponent(() => import('./configuration-panel'), 'ConfigurationPanel'),
})

/** The routes of blocks, components, files, the site and configurations. */
export const contentRoutes = [
  index,
  blocks,
  newBlock,
  block,
  components,
  newComponent,
  component,
  files.addChildren([file]),
  site,
  configurations.addChildren([newConfiguration, configuration]),
] as const
