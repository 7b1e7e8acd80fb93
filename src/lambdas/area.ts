import { defineArea } from '../jobs/area'
import { useMeasures } from '../limits/quota-use'
import { create, find, get, remove, update } from './host-api/entities'
import { emitEvent } from './host-api/events'
import { fetchForLambda } from './host-api/fetch'
import { hostCalls } from './host-api/host-api'
import { startPrewarming } from './prewarmer'
import { lambdaRoutes } from './routes'
import { countSecondsToday, removeOld } from './runs'

/** Sandboxed functions of tenants. */
export const lambdas = defineArea({
  name: 'lambdas',
  routes: [lambdaRoutes],
  housekeeping: { 'old lambda runs': removeOld },
  provides: [
    useMeasures.provide({ lambdaSeconds: countSecondsToday }),
    hostCalls.provide({
      'entities.find': find,
      'entities.get': get,
      'entities.create': create,
      'entities.update': update,
      'entities.remove': remove,
      'events.emit': emitEvent,
      fetch: fetchForLambda,
    }),
  ],
  start: () => ({ stop: startPrewarming() }),
})
