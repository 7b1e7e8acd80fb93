import { Button, Select } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { Outlet, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { api } from '../../api/client'
import type { IntegrationSource } from '../../api/schema'
import type { Column } from '../../ui/data-table'
import { useListRows } from '../../ui/list-rows'
import { ListTable } from '../../ui/list-table'
import { RelativeTime } from '../../ui/relative-time'
import { Screen } from '../../ui/screen'
import { StateTag } from '../../ui/state-tag'
import { connectionKinds } from './kinds'

type Search = { sort?: string; kind?: string }

const toAddress = ({ url, apiUrl, host }: IntegrationSource['metadata']) => String(url ?? apiUrl ?? host ?? '')

const columns: Column<IntegrationSource>[] = [
  { key: 'name', label: 'Name', width: 220, isSortable: true, render: ({ name }) => name },
  { key: 'kind', label: 'Kind', width: 190, isSortable: true, render: ({ kind }) => connectionKinds[kind].label },
  { key: 'address', label: 'Address', width: 260, render: ({ metadata }) => toAddress(metadata) },
  {
    key: 'secrets',
    label: 'Secrets',
    width: 110,
    render: ({ secrets }) => (secrets.length ? `${secrets.length} set` : <StateTag label="None" />),
  },
  { key: 'labels', label: 'Labels', width: 140, render: ({ labels }) => labels.join(', ') },
  {
    key: 'updated',
    label: 'Updated',
    width: 140,
    isSortable: true,
    render: ({ updated }) => <RelativeTime time={updated} />,
  },
]

/** All connections to other servers. */
export function Connections() {
  const search = useSearch({ strict: false }) as Search
  const { id } = useParams({ strict: false })
  const navigate = useNavigate()
  const query = { sort: 'name', ...search }
  const list = useListRows(['connections', 'list', query], (request) =>
    api.GET('/api/integration-sources', { params: { query: { ...request, ...query } } }),
  )
  const changeSearch = (part: Search) => navigate({ to: '.', search: { ...search, ...part } as never, replace: true })
  const openNew = () => navigate({ to: '/automation/connections/new', search: search as never })
  useHotkeys([['n', openNew]])
  return (
    <Screen
      title="Connections"
      request={{ method: 'GET', path: '/api/integration-sources', query }}
      actions={
        <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
          New connection
        </Button>
      }
      toolbar={
        <Select
          size="xs"
          aria-label="Kind"
          placeholder="All kinds"
          clearable
          data={Object.entries(connectionKinds).map(([value, { label }]) => ({ value, label }))}
          value={search.kind ?? null}
          onChange={(kind) => changeSearch({ kind: kind ?? undefined })}
        />
      }
    >
      <ListTable
        label="Connections"
        list={list}
        columns={columns}
        rowKey={({ _id }) => _id}
        sort={query.sort}
        onSort={(sort) => changeSearch({ sort })}
        activeKey={id}
        onOpen={({ _id }) =>
          navigate({ to: '/automation/connections/$id', params: { id: _id }, search: search as never })
        }
        empty={
          search.kind
            ? {
                text: 'There is no connection of this kind.',
                action: { label: 'Show all', onClick: () => changeSearch({ kind: undefined }) },
              }
            : {
                text: 'There are no connections yet. A connection keeps the address and the secrets of another server.',
                action: { label: 'Connect a server', onClick: openNew },
              }
        }
      />
      <Outlet key={id} />
    </Screen>
  )
}
