import { defineArea } from '../jobs/area'
import { removeOld } from './events'
import { eventRoutes } from './routes'

/** Events that the server or its tenants have recorded. */
export const events = defineArea({ name: 'events', routes: eventRoutes, housekeeping: { 'old events': removeOld } })
