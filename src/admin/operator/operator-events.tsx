import type { OperatorEvent } from '../api/schema'
import type { Column } from '../ui/data-table'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { operatorApi } from './operator-api'
import { OpenTasks, useOpenTasks } from './tasks/open-tasks'

const TITLES: Record<string, string> = {
  'tenant-created': 'Created',
  'tenant-suspended': 'Suspended',
  'tenant-resumed': 'Resumed',
  'tenant-deleted': 'Deleted',
  'tenant-moved': 'Moved',
  'tenant-restored': 'Restored',
  'tenant-restore-undone': 'Restore undone',
  'default-tenant-changed': 'Default tenant changed',
  'tenant-cloned': 'Copied',
  'tenant-outgoing-resumed': 'Acts outside again',
  'tenant-imported': 'Imported',
  'backup-failed': 'Backup failed',
  'hosts-changed': 'Hosts changed',
  'limits-changed': 'Limits changed',
  'quotas-changed': 'Quotas changed',
  'quota-warning': 'Quota nearly used up',
  'quota-reached': 'Quota used up',
  'support-opened': 'Opened for support',
  'operator-token-created': 'Token created',
  'operator-token-removed': 'Token removed',
  'certificate-issued': 'Certificate issued',
  'certificate-failed': 'Certificate failed',
}

const toText = (value: unknown) => (Array.isArray(value) ? value.join(', ') : String(value))

const columns: Column<OperatorEvent>[] = [
  { key: 'created', label: 'Time', width: 140, render: ({ created }) => <RelativeTime time={created} /> },
  { key: 'tenant', label: 'Tenant', width: 180, render: ({ tenant }) => tenant },
  { key: 'eventName', label: 'Event', width: 160, render: ({ eventName }) => TITLES[eventName] ?? eventName },
  {
    ...{ key: 'metadata', label: 'Details', width: 360 },
    render: ({ metadata }) =>
      Object.entries(metadata)
        .map(([name, value]) => `${name}: ${toText(value)}`)
        .join(', '),
  },
]

/** What was done with tenants, on this page and by the command line, and what happened to them. */
export function OperatorEvents() {
  const tasks = useOpenTasks()
  const list = useListRows(['operator', 'events'], (page) =>
    operatorApi.GET('/operator/events', { params: { query: page } }),
  )
  return (
    <Screen title="Events" toolbar={tasks.length > 0 && <OpenTasks tasks={tasks} />}>
      <ListTable
        label="Events"
        columns={columns}
        list={list}
        rowKey={({ _id }) => _id}
        empty={{ text: 'No events yet.' }}
      />
    </Screen>
  )
}
