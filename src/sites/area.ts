import { contentNames } from '../backups/contents/content-names'
import { defineArea } from '../jobs/area'
import { siteContentNames } from './deployments'
import { siteRoutes } from './routes'

/** Static sites of tenants. */
export const sites = defineArea({
  name: 'sites',
  routes: siteRoutes,
  provides: [contentNames.provide([siteContentNames])],
})
