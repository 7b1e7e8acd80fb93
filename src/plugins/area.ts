import { sourcePluginLookup } from '../events/events'
import { pluginLookup } from '../integrations/integrations'
import { defineArea } from '../jobs/area'
import { removeOld } from './deliveries'
import { deliveryJob } from './delivery-job'
import { DELIVERY_JOB, pluginSubscriber } from './event-subscriber'
import { findPluginNameByUser, pluginExists } from './plugin-cache'
import { closeStreams, proxyRoutes } from './proxy'
import { pluginRoutes } from './routes'

/** Plugins: external services that hear of events and answer below a path of their own. */
export const plugins = defineArea({
  name: 'plugins',
  routes: pluginRoutes,
  fallbackRoutes: proxyRoutes,
  jobs: { [DELIVERY_JOB]: deliveryJob },
  subscribers: [pluginSubscriber],
  housekeeping: { 'old deliveries': removeOld },
  provides: [sourcePluginLookup.provide(findPluginNameByUser), pluginLookup.provide(pluginExists)],
  start: () => ({ stop: closeStreams }),
})
