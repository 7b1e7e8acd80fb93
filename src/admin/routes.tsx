import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Navigate } from '@tanstack/react-router'
import { Frame } from './frame/frame'
import { NotFound } from './frame/not-found'
import { ProblemMessage } from './ui/problem-message'

const root = createRootRoute({ notFoundComponent: NotFound })

/** Places that need no sign-in. */
const setUp = createRoute({
  getParentRoute: () => root,
  path: 'set-up',
  component: lazyRouteComponent(() => import('./set-up/set-up'), 'SetUp'),
})

const link = createRoute({
  getParentRoute: () => root,
  path: 'link',
  component: lazyRouteComponent(() => import('./sign-in/link'), 'SignInLink'),
})

/** Places inside the frame, which asks for a sign-in first. */
const frame = createRoute({ getParentRoute: () => root, id: 'frame', component: Frame })
const index = createRoute({ getParentRoute: () => frame, path: '/', component: () => <Navigate to="/home" replace /> })
const home = createRoute({
  getParentRoute: () => frame,
  path: 'home',
  component: lazyRouteComponent(() => import('./home/home'), 'Home'),
})
const data = createRoute({
  getParentRoute: () => frame,
  path: 'data',
  component: lazyRouteComponent(() => import('./data/blueprints'), 'Blueprints'),
})
const newBlueprint = createRoute({
  getParentRoute: () => frame,
  path: 'blueprints/new',
  component: lazyRouteComponent(() => import('./data/new-blueprint'), 'NewBlueprint'),
})
const entities = createRoute({
  getParentRoute: () => frame,
  path: 'data/$blueprint',
  component: lazyRouteComponent(() => import('./data/entities'), 'Entities'),
})
// No entity has the identifier "all".
const newEntity = createRoute({
  getParentRoute: () => entities,
  path: 'all/new',
  component: lazyRouteComponent(() => import('./data/entity-panel'), 'NewEntityPanel'),
})
const entity = createRoute({
  getParentRoute: () => entities,
  path: '$identifier',
  component: lazyRouteComponent(() => import('./data/entity-panel'), 'EntityPanel'),
})

/** The words of an address: the server's query language, so a filtered list can be copied into a program. */
function parseSearch(search: string): Record<string, string> {
  // The tab remembers it; to the server it would be a filter.
  const { tenant: _, ...rest } = Object.fromEntries(new URLSearchParams(search))
  return rest
}
function stringifySearch(search: Record<string, unknown>): string {
  const pairs = Object.entries(search).filter(([, value]) => value !== undefined && value !== '')
  const encode = (text: string) => encodeURIComponent(text).replace(/%(24|5B|5D|2C|3A)/g, decodeURIComponent)
  return pairs.length ? `?${pairs.map(([key, value]) => `${encode(key)}=${encode(String(value))}`).join('&')}` : ''
}

/** All places of the page. */
export const router = createRouter({
  routeTree: root.addChildren([
    setUp,
    link,
    frame.addChildren([index, home, data, newBlueprint, entities.addChildren([newEntity, entity])]),
  ]),
  basepath: '/admin',
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  defaultErrorComponent: ({ error }) => <ProblemMessage error={error} />,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
