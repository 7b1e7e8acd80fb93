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
const hosts = createRoute({
  getParentRoute: () => frameRoute,
  path: 'settings/hosts',
  component: lazyRouteComponent(() => import('./hosts'), 'Hosts'),
})
// No host has the name "new".
const newHost = createRoute({
  getParentRoute: () => hosts,
  path: 'new',
  component: lazyRouteComponent(() => import('./new-host-panel'), 'NewHostPanel'),
})
const host = createRoute({
  getParentRoute: () => hosts,
  path: '$host',
  component: lazyRouteComponent(() => import('./host-panel'), 'HostPanel'),
})
const signIn = createRoute({
  getParentRoute: () => frameRoute,
  path: 'settings/sign-in',
  component: lazyRouteComponent(() => import('./sign-in-settings'), 'SignInSettings'),
})
const newProvider = createRoute({
  getParentRoute: () => signIn,
  path: 'providers/new',
  component: lazyRouteComponent(() => import('./new-provider-panel'), 'NewProviderPanel'),
})
const provider = createRoute({
  getParentRoute: () => signIn,
  path: '$provider',
  component: lazyRouteComponent(() => import('./provider-panel'), 'ProviderPanel'),
})
const limits = createRoute({
  getParentRoute: () => frameRoute,
  path: 'settings/limits',
  component: lazyRouteComponent(() => import('./limit-settings'), 'LimitSettings'),
})
const mail = createRoute({
  getParentRoute: () => frameRoute,
  path: 'settings/mail',
  component: lazyRouteComponent(() => import('./mail-templates'), 'MailTemplates'),
})
const template = createRoute({
  getParentRoute: () => mail,
  path: '$template',
  component: lazyRouteComponent(() => import('./template-panel'), 'TemplatePanel'),
})
const outbox = createRoute({
  getParentRoute: () => frameRoute,
  path: 'settings/outbox',
  component: lazyRouteComponent(() => import('./outbox'), 'Outbox'),
})
const sentMail = createRoute({ getParentRoute: () => outbox, path: '$mail' })
const definitions = createRoute({
  getParentRoute: () => frameRoute,
  path: 'settings/definitions',
  component: lazyRouteComponent(() => import('./definitions/definitions'), 'Definitions'),
})

/** The routes of settings of the tenant. */
export const settingsRoutes = [
  ...[settings, general, limits, definitions],
  hosts.addChildren([newHost, host]),
  signIn.addChildren([newProvider, provider]),
  mail.addChildren([template]),
  outbox.addChildren([sentMail]),
] as const
