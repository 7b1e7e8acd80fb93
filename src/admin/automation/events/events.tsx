import { Button } from '@mantine/core'
import { IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react'
import { Outlet, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { ListTable } from '../../ui/list-table'
import { Screen } from '../../ui/screen'
import { EventBars } from './event-bars'
import { createEventColumns } from './event-columns'
import { EventFilterBar } from './event-filter-bar'
import type { EventFilters } from './event-queries'
import { useEventTail } from './event-tail'
import classes from './events.module.css'

/** What happened, newest first. New events appear at once, and a click on a value shows only those with it. */
export function Events() {
  const filters = useSearch({ strict: false }) as EventFilters
  const { id } = useParams({ strict: false })
  const navigate = useNavigate()
  const [isPaused, setIsPaused] = useState(false)
  // What happened before a moment does not change any more.
  const list = useEventTail(filters, !isPaused && !filters.to)
  const change = (part: EventFilters) => navigate({ to: '.', search: { ...filters, ...part } as never, replace: true })
  const isFiltered = Object.values(filters).some(Boolean)
  return (
    <Screen
      title="Events"
      request={{ method: 'GET', path: '/api/events', query: filters as Record<string, string> }}
      actions={
        <Button
          variant="default"
          leftSection={isPaused ? <IconPlayerPlay size={14} /> : <IconPlayerPause size={14} />}
          rightSection={
            !isPaused && !filters.to && <span className={classes.live} title="The list follows new events" />
          }
          onClick={() => setIsPaused(!isPaused)}
        >
          {isPaused ? 'Follow' : 'Pause'}
        </Button>
      }
      toolbar={<EventFilterBar filters={filters} onChange={change} />}
    >
      <div className={classes.events}>
        <EventBars filters={filters} onChange={change} />
        <ListTable
          label="Events"
          list={list}
          columns={createEventColumns(change)}
          rowKey={({ _id }) => _id}
          activeKey={id}
          onOpen={({ _id }) =>
            navigate({ to: '/automation/events/$id', params: { id: _id }, search: filters as never })
          }
          empty={
            isFiltered
              ? {
                  text: 'No event matches.',
                  action: { label: 'Clear filters', onClick: () => navigate({ to: '.', search: {} as never }) },
                }
              : { text: 'Nothing has happened yet. Events of users, entities and everything else appear here.' }
          }
        />
      </div>
      <Outlet key={id} />
    </Screen>
  )
}
