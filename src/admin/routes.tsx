import { createRoute, createRouter, lazyRouteComponent, Navigate } from '@tanstack/react-router'
import { accountRoutes } from './account/routes'
import { aiRoutes } from './ai/routes'
import { automationRoutes } from './automation/routes'
import { chartRoutes } from './charts/routes'
import { contentRoutes } from './content/routes'
import { dataRoutes } from './data/routes'
import { designRoutes } from './design/routes'
import { frameRoute, rootRoute } from './frame/frame-route'
import { operatorRoutes } from './operator/routes'
import { paymentRoutes } from './payments/routes'
import { peopleRoutes } from './people/routes'
import { settingsRoutes } from './settings/routes'
import { transferRoutes } from './transfer/routes'
import { ProblemMessage } from './ui/problem-message'

/** Screens that need no sign-in. */
const setUp = createRoute({
  getParentRoute: () => rootRoute,
  path: 'set-up',
  component: lazyRouteComponent(() => import('./set-up/set-up'), 'SetUp'),
})
const link = createRoute({
  getParentRoute: () => rootRoute,
  path: 'link',
  component: lazyRouteComponent(() => import('./sign-in/link'), 'SignInLink'),
})
const emailLink = createRoute({
  getParentRoute: () => rootRoute,
  path: 'email-link',
  component: lazyRouteComponent(() => import('./sign-in/email-link'), 'EmailLink'),
})
const resetPassword = createRoute({
  getParentRoute: () => rootRoute,
  path: 'reset-password',
  component: lazyRouteComponent(() => import('./sign-in/reset-password'), 'ResetPassword'),
})
const verifyEmail = createRoute({
  getParentRoute: () => rootRoute,
  path: 'verify-email',
  component: lazyRouteComponent(() => import('./sign-in/mail-link'), 'VerifyEmail'),
})
const revertEmail = createRoute({
  getParentRoute: () => rootRoute,
  path: 'revert-email',
  component: lazyRouteComponent(() => import('./sign-in/mail-link'), 'RevertEmail'),
})

const index = createRoute({
  getParentRoute: () => frameRoute,
  path: '/',
  component: () => <Navigate to="/home" replace />,
})
const home = createRoute({
  getParentRoute: () => frameRoute,
  path: 'home',
  component: lazyRouteComponent(() => import('./home/home'), 'Home'),
})

const start = createRoute({
  getParentRoute: () => frameRoute,
  path: 'start',
  component: lazyRouteComponent(() => import('./set-up/start'), 'Start'),
})

/** Returns the parameters of an address. They are the server's query language, so programs can take over a filtered list. */
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

/** All routes of the page. */
export const router = createRouter({
  routeTree: rootRoute.addChildren([
    setUp,
    link,
    emailLink,
    resetPassword,
    verifyEmail,
    revertEmail,
    ...operatorRoutes,
    frameRoute.addChildren([
      index,
      home,
      start,
      ...dataRoutes,
      ...designRoutes,
      ...chartRoutes,
      ...transferRoutes,
      ...peopleRoutes,
      ...automationRoutes,
      ...aiRoutes,
      ...paymentRoutes,
      ...contentRoutes,
      ...settingsRoutes,
      ...accountRoutes,
    ]),
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
