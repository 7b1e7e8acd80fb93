import { defineArea } from '../jobs/area'
import { definitionRoutes } from './routes'

/** The definitions of a tenant as files. */
export const definitions = defineArea({ name: 'definitions', routes: [definitionRoutes] })
