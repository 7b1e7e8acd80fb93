import { defineArea } from '../jobs/area'
import { connectionRoutes } from './routes'

/** Connections to other services, with their secrets. */
export const connections = defineArea({ name: 'connections', routes: [connectionRoutes] })
