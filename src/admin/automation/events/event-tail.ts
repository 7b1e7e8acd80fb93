import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { api } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { Event } from '../../api/schema'
import { useListRows } from '../../ui/list-rows'
import { type EventFilters, newEventsQuery } from './event-queries'

/** The list is fetched anew when so many events came that asking for them each time costs more. */
const MAX_NEW_EVENTS = 200

/** The events that match filters, newest first. New ones come on top as long as the list is followed. */
export function useEventTail(filters: EventFilters, isFollowed: boolean) {
  const queryKey = ['events', 'list', filters]
  const list = useListRows<Event>(queryKey, (request) =>
    api.GET('/api/events', { params: { query: { ...request, ...filters } as object } }),
  )
  const filtersKey = JSON.stringify(filters)
  const isLoaded = list.isEmpty || list.count > 0
  const tail = useQuery({
    ...newEventsQuery(filters, list.rows[0], isFollowed && isLoaded),
    // Only the newest event of the list is another one; what other filters found is of no use.
    placeholderData: (previous, query) => (query?.queryKey[2] === filtersKey ? previous : undefined),
  })
  const listed = new Set(list.rows.map(({ _id }) => _id))
  const fresh = isLoaded ? (tail.data ?? []).filter(({ _id }) => !listed.has(_id)) : []
  const isTooLong = fresh.length > MAX_NEW_EVENTS
  useEffect(() => {
    if (isTooLong) void queryClient.invalidateQueries({ queryKey })
  }, [isTooLong, filtersKey])
  const rows = [...fresh, ...list.rows]
  return {
    ...list,
    rows,
    count: rows.length,
    isEmpty: list.isEmpty && !fresh.length,
    error: list.error ?? tail.error,
    rowAt: (index: number): Event | undefined => rows[index],
    onRangeChange: (first: number, last: number) => list.onRangeChange(first - fresh.length, last - fresh.length),
  }
}
