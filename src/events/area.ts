import { defineArea } from '../jobs/area'
import { removeOld } from './events'
import { eventRoutes } from './routes'

/** Events recorded by the server or by callers of the API. */
export const events = defineArea({ name: 'events', routes: eventRoutes, housekeeping: { 'old events': removeOld } })
