import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { type Column, DataTable } from '../ui/data-table'
import { EmptyState } from '../ui/empty-state'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { type HostRow, useHostRows } from './host-rows'
import { HostState } from './host-state'
import classes from './list-column.module.css'

const columns: Column<HostRow>[] = [
  { key: 'host', label: 'Host', width: 260, render: ({ host }) => host },
  { key: 'state', label: 'State', width: 150, render: ({ state }) => <HostState state={state} /> },
  {
    key: 'source',
    label: 'Set by',
    width: 180,
    render: ({ isGiven, websites }) =>
      [isGiven && 'The operator', websites.length > 0 && 'A website'].filter(Boolean).join(', '),
  },
]

/** The hosts that lead to the tenant, and those of its websites. */
export function Hosts() {
  const { rows, error } = useHostRows()
  const { host } = useParams({ strict: false })
  const navigate = useNavigate()
  const openNew = () => navigate({ to: '/settings/hosts/new' })
  return (
    <Screen
      title="Hosts"
      request={{ method: 'GET', path: '/api/configurations/app-configuration' }}
      actions={
        <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
          Add a website
        </Button>
      }
    >
      <div className={classes.column}>
        {error && <ProblemMessage error={error} />}
        {rows?.length === 0 && (
          <EmptyState
            text="No host leads to this tenant yet. Name the address of your website to begin."
            action={{ label: 'Add a website', onClick: openNew }}
          />
        )}
        {rows && rows.length > 0 && (
          <DataTable
            label="Hosts"
            columns={columns}
            count={rows.length}
            rowAt={(index) => rows[index]}
            rowKey={(row) => row.host}
            activeKey={host}
            onOpen={(row) => navigate({ to: '/settings/hosts/$host', params: { host: row.host } })}
          />
        )}
      </div>
      <Outlet key={host} />
    </Screen>
  )
}
