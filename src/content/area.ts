import { defineArea } from '../jobs/area'
import { checkProvenHosts, startHostChecks } from '../tenancy/host-checks'
import { blockRoutes } from './routes/blocks'
import { componentRoutes, staticRoutes } from './routes/components'
import { configurationRoutes } from './routes/configurations'
import { reconcileHosts } from './website-hosts'

/** Components, blocks and configurations, and the hosts of a tenant's websites. */
export const content = defineArea({
  name: 'content',
  routes: [componentRoutes, staticRoutes, blockRoutes, configurationRoutes],
  housekeeping: { 'hosts of websites': reconcileHosts, 'proven hosts': ({ tenant }) => checkProvenHosts(tenant) },
  start: () => ({ stop: startHostChecks() }),
})
