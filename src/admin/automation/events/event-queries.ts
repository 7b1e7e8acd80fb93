import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../../api/client'
import type { Event } from '../../api/schema'

/** What the address of the list says: the filters that the API takes, by their names there. */
export type EventFilters = {
  source?: string
  kind?: string
  eventName?: string
  user?: string
  workspace?: string
  period?: string
  from?: string
  to?: string
  search?: string
}

export const DAY_MS = 86_400_000
const TAIL_INTERVAL_MS = 2_000
/** Clocks of several servers differ a little. */
const CLOCK_DIFFERENCE_MS = 10_000
const MAX_TAIL_EVENTS = 1_000
const COUNT_INTERVAL_MS = 10_000

/** The sources, kinds and names of all events. */
export const eventOptionsQuery = queryOptions({
  queryKey: ['events', 'options'],
  queryFn: () => fetchData(api.GET('/api/events/filter-options')),
  staleTime: 60_000,
})

/** The events that integrations can wait for. */
export const knownEventsQuery = queryOptions({
  queryKey: ['events', 'known'],
  queryFn: () => fetchData(api.GET('/api/events/known')),
  staleTime: 60_000,
})

/** One event. */
export const eventQuery = (eventId: string) =>
  queryOptions({
    queryKey: ['events', 'one', eventId],
    queryFn: () => fetchData(api.GET('/api/events/{eventId}', { params: { path: { eventId } } })),
    staleTime: Number.POSITIVE_INFINITY,
  })

/** The events since the newest one of a list, asked for as long as the list is followed. */
export const newEventsQuery = (filters: EventFilters, newest: Event | undefined, isFollowed: boolean) => {
  const from = newest && new Date(Date.parse(newest.created) - CLOCK_DIFFERENCE_MS).toISOString()
  return queryOptions({
    queryKey: ['events', 'tail', JSON.stringify(filters), from],
    queryFn: () => {
      const query = { ...filters, ...(from && { from, period: undefined }), limit: MAX_TAIL_EVENTS }
      return fetchData(api.GET('/api/events', { params: { query: query as object } }))
    },
    enabled: isFollowed,
    refetchInterval: TAIL_INTERVAL_MS,
  })
}

/** How many events each day had. The filters of time are replaced by the first day. */
export const dayCountsQuery = ({ period: _, from: __, to: ___, ...filters }: EventFilters, firstDay: string) =>
  queryOptions({
    queryKey: ['events', 'days', filters, firstDay],
    queryFn: async () => {
      const query = { ...filters, from: firstDay, groupBy: 'day' as const }
      const { groups = [] } = await fetchData(api.GET('/api/events/count', { params: { query } }))
      return new Map(groups.map(({ group, count }) => [group, count]))
    },
    refetchInterval: COUNT_INTERVAL_MS,
  })
