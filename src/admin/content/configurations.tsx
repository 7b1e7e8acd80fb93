import { Button } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Outlet, useNavigate, useParams } from '@tanstack/react-router'
import type { Configuration } from '../api/schema'
import { type Column, DataTable } from '../ui/data-table'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { StateTag } from '../ui/state-tag'
import { configurationsQuery } from './configuration-queries'
import classes from './configurations.module.css'
import { knownConfigurations } from './known-configurations'

/** A configuration, or one of the server that is not set yet. */
type Row = Pick<Configuration, 'key' | 'description'> & Partial<Configuration>

const columns: Column<Row>[] = [
  { key: 'key', label: 'Key', width: 230, render: ({ key }) => key },
  {
    ...{ key: 'public', label: 'Who may read it', width: 130 },
    render: ({ public: isPublic }) => (
      <StateTag label={isPublic ? 'everybody' : 'admins'} tone={isPublic ? 'good' : 'neutral'} />
    ),
  },
  {
    ...{ key: 'description', label: 'Description', width: 360 },
    render: ({ key, description }) => description || knownConfigurations[key]?.description,
  },
  {
    ...{ key: 'updated', label: 'Changed', width: 130 },
    render: ({ updated }) => (updated ? <RelativeTime time={updated} /> : 'not set'),
  },
]

/** Returns the configurations, and those of the server that are not set yet, by their keys. */
function toRows(configurations: Configuration[]): Row[] {
  const unset = Object.keys(knownConfigurations).filter((key) => !configurations.some((one) => one.key === key))
  const rows = [...configurations, ...unset.map((key): Row => ({ key, description: '' }))]
  return rows.sort((one, other) => one.key.localeCompare(other.key))
}

/** All configurations by their keys. */
export function Configurations() {
  const navigate = useNavigate()
  const { key: openKey } = useParams({ strict: false })
  const { data, error } = useQuery(configurationsQuery)
  const rows = toRows(data ?? [])
  const openNew = () => navigate({ to: '/content/configurations/-/new' })
  useHotkeys([['n', () => void openNew()]])
  return (
    <Screen
      title="Configurations"
      request={{ method: 'GET', path: '/api/configurations' }}
      actions={
        <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
          New configuration
        </Button>
      }
    >
      <div className={classes.list}>
        {error && <ProblemMessage error={error} />}
        {data && (
          <DataTable
            label="Configurations"
            columns={columns}
            count={rows.length}
            rowAt={(index) => rows[index]}
            rowKey={({ key }) => key}
            activeKey={openKey}
            onOpen={({ key }) => navigate({ to: '/content/configurations/$key', params: { key } })}
          />
        )}
      </div>
      <Outlet key={openKey} />
    </Screen>
  )
}
