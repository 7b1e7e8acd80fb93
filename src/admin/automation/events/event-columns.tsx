import { UnstyledButton } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Event } from '../../api/schema'
import type { Column } from '../../ui/data-table'
import { RelativeTime } from '../../ui/relative-time'
import { UserLabel } from '../user-name'
import type { EventFilters } from './event-queries'
import classes from './events.module.css'

/** Returns the columns of events. A click on a value filters by it. */
export function createEventColumns(onFilter: (filters: EventFilters) => void): Column<Event>[] {
  const filterBy = (key: keyof EventFilters, value: string | null, label: ReactNode = value) =>
    value && (
      <UnstyledButton
        className={classes.value}
        title={`Show only this ${key === 'eventName' ? 'name' : key}`}
        onClick={(event) => {
          event.stopPropagation()
          onFilter({ [key]: value })
        }}
      >
        {label}
      </UnstyledButton>
    )
  return [
    { key: 'created', label: 'When', width: 130, render: ({ created }) => <RelativeTime time={created} /> },
    { key: 'eventName', label: 'Name', width: 180, render: ({ eventName }) => filterBy('eventName', eventName) },
    { key: 'kind', label: 'Kind', width: 130, render: ({ kind }) => filterBy('kind', kind) },
    { key: 'source', label: 'Source', width: 120, render: ({ source }) => filterBy('source', source) },
    {
      key: 'user',
      label: 'User',
      width: 130,
      render: ({ user }) => filterBy('user', user, user && <UserLabel id={user} />),
    },
    { key: 'description', label: 'Description', width: 420, render: ({ description }) => description },
  ]
}
