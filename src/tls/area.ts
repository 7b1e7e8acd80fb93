import { config } from '../config'
import { defineArea } from '../jobs/area'
import { startOrdering } from './certificate-orders'

/** HTTPS: certificates of files, and those that are ordered for the hosts of tenants. */
export const tls = defineArea({ name: 'tls', start: () => (config.ATOLL_ACME === 'on' ? startOrdering() : {}) })
