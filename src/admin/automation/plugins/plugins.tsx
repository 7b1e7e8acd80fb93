import { Button } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { api } from '../../api/client'
import type { Plugin } from '../../api/schema'
import type { Column } from '../../ui/data-table'
import { useListRows } from '../../ui/list-rows'
import { ListTable } from '../../ui/list-table'
import { RelativeTime } from '../../ui/relative-time'
import { Screen } from '../../ui/screen'
import { PluginHealth } from './plugin-health'

const columns: Column<Plugin>[] = [
  { key: 'name', label: 'Name', width: 200, isSortable: true, render: ({ name }) => name },
  { key: 'health', label: 'State', width: 120, render: (plugin) => <PluginHealth plugin={plugin} /> },
  {
    key: 'apiPath',
    label: 'Answers below',
    width: 180,
    isSortable: true,
    render: ({ apiPath }) => apiPath && <code>/api/{apiPath}/</code>,
  },
  {
    key: 'subscribedEvents',
    label: 'Subscriptions',
    width: 110,
    align: 'right',
    render: ({ subscribedEvents }) => subscribedEvents.length,
  },
  {
    key: 'lastSuccess',
    label: 'Last success',
    width: 140,
    render: ({ health }) => health.lastSuccessAt && <RelativeTime time={health.lastSuccessAt} />,
  },
  {
    key: 'lastError',
    label: 'Last error',
    width: 320,
    render: ({ health }) => health.status === 'failing' && health.lastError,
  },
]

/** All plugins, with whether they work. */
export function Plugins() {
  const { sort = 'name' } = useSearch({ strict: false }) as { sort?: string }
  const navigate = useNavigate()
  const list = useListRows(['plugins', 'list', sort], (request) =>
    api.GET('/api/plugins', { params: { query: { ...request, sort } } }),
  )
  const openNew = () => navigate({ to: '/automation/plugins/new' })
  useHotkeys([['n', openNew]])
  return (
    <Screen
      title="Plugins"
      request={{ method: 'GET', path: '/api/plugins', query: { sort } }}
      actions={
        <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
          New plugin
        </Button>
      }
    >
      <ListTable
        label="Plugins"
        list={list}
        columns={columns}
        rowKey={({ _id }) => _id}
        sort={sort}
        onSort={(next) => navigate({ to: '.', search: { sort: next } as never, replace: true })}
        onOpen={({ _id }) => navigate({ to: '/automation/plugins/$id', params: { id: _id } })}
        empty={{
          text: 'There are no plugins yet. A plugin is a server of yours that receives events and answers requests.',
          action: { label: 'Register a plugin', onClick: openNew },
        }}
      />
    </Screen>
  )
}
