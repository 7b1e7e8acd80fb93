import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { frameRoute } from '../frame/frame-route'

// An entity may be called "design" or "api", and a blueprint "diagram". No entity is called "all", and nothing else is
// at "blueprints", so these places hide neither.
const design = createRoute({
  getParentRoute: () => frameRoute,
  path: 'data/$blueprint/all/design',
  component: lazyRouteComponent(() => import('./design-screen'), 'DesignScreen'),
})
const fields = createRoute({
  getParentRoute: () => design,
  path: '/',
  component: lazyRouteComponent(() => import('./design-fields'), 'DesignFields'),
})
const rules = createRoute({
  getParentRoute: () => design,
  path: 'rules',
  component: lazyRouteComponent(() => import('./design-rules'), 'DesignRules'),
})
const seeAs = createRoute({
  getParentRoute: () => design,
  path: 'see-as',
  component: lazyRouteComponent(() => import('./see-as'), 'SeeAs'),
})
const settings = createRoute({
  getParentRoute: () => design,
  path: 'settings',
  component: lazyRouteComponent(() => import('./design-settings'), 'DesignSettings'),
})
const json = createRoute({
  getParentRoute: () => design,
  path: 'json',
  component: lazyRouteComponent(() => import('./design-json'), 'DesignJson'),
})
const api = createRoute({
  getParentRoute: () => frameRoute,
  path: 'data/$blueprint/all/api',
  component: lazyRouteComponent(() => import('./blueprint-api'), 'BlueprintApi'),
})
const diagram = createRoute({
  getParentRoute: () => frameRoute,
  path: 'blueprints/diagram',
  component: lazyRouteComponent(() => import('./diagram'), 'Diagram'),
})

/** The routes of the design of blueprints. */
export const designRoutes = [design.addChildren([fields, rules, seeAs, settings, json]), api, diagram] as const
