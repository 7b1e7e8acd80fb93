import { contentUsers } from '../files/contents'
import { defineArea } from '../jobs/area'
import { listUsedContents } from './deployments'
import { siteRoutes } from './routes'

/** Static sites of tenants. */
export const sites = defineArea({
  name: 'sites',
  routes: siteRoutes,
  provides: [contentUsers.provide([listUsedContents])],
})
