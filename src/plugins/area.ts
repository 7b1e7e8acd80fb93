import { copyDetachments } from '../backups/copy-detachments'
import { sourcePluginLookup } from '../events/events'
import { pluginLookup } from '../integrations/integrations'
import { defineArea } from '../jobs/area'
import { removeOld } from './deliveries'
import { deliveryJob } from './delivery-job'
import { DELIVERY_JOB, pluginSubscriber } from './event-subscriber'
import { findPluginNameByUser, pluginExists } from './plugin-cache'
import { closeStreams, proxyRoutes } from './proxy'
import { pluginRoutes } from './routes'

/** Plugins: external services that receive events and answer requests below a path of their own. */
export const plugins = defineArea({
  name: 'plugins',
  routes: [pluginRoutes],
  fallbackRoutes: proxyRoutes,
  jobs: { [DELIVERY_JOB]: deliveryJob },
  subscribers: [pluginSubscriber],
  housekeeping: { 'old deliveries': removeOld },
  provides: [
    copyDetachments.provide([`delete from jobs where kind = '${DELIVERY_JOB}' and state = 'waiting'`]),
    sourcePluginLookup.provide(findPluginNameByUser),
    pluginLookup.provide(pluginExists),
  ],
  start: () => ({ stop: closeStreams }),
})
