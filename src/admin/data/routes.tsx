import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { frameRoute } from '../frame/frame-route'

const blueprints = createRoute({
  getParentRoute: () => frameRoute,
  path: 'data',
  component: lazyRouteComponent(() => import('./blueprints'), 'Blueprints'),
})
const newBlueprint = createRoute({
  getParentRoute: () => frameRoute,
  path: 'blueprints/new',
  component: lazyRouteComponent(() => import('./new-blueprint'), 'NewBlueprint'),
})
const entities = createRoute({
  getParentRoute: () => frameRoute,
  path: 'data/$blueprint',
  component: lazyRouteComponent(() => import('./entities'), 'Entities'),
})
// No entity has the identifier "all".
const newEntity = createRoute({
  getParentRoute: () => entities,
  path: 'all/new',
  component: lazyRouteComponent(() => import('./new-entity-panel'), 'NewEntityPanel'),
})
const entity = createRoute({
  getParentRoute: () => entities,
  path: '$identifier',
  component: lazyRouteComponent(() => import('./entity-panel'), 'EntityPanel'),
})

/** The routes of blueprints and their entities. */
export const dataRoutes = [blueprints, newBlueprint, entities.addChildren([newEntity, entity])] as const
