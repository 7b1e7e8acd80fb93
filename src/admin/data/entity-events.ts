import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import type { Blueprint } from '../api/schema'

const MAX_EVENTS = 200

/** Only users with one of these roles read events. */
export const EVENT_READERS = ['admin', 'editor']

/** Returns whether a blueprint records each change of its entities. */
export const recordsChanges = ({ dispatchers }: Blueprint) =>
  !!(dispatchers?.create || dispatchers?.update || dispatchers?.delete)

/** What happened to an entity, the newest first. `version` fetches it anew after a change. */
export const entityEventsQuery = (blueprint: string, id: string, version = '') =>
  queryOptions({
    queryKey: ['events', 'of entity', blueprint, id, version],
    queryFn: () => {
      const query = { source: 'blueprints', kind: blueprint, search: id, limit: MAX_EVENTS }
      return fetchData(api.GET('/api/events', { params: { query } }))
    },
  })
