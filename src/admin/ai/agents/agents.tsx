import { Button } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { api } from '../../api/client'
import { meQuery } from '../../api/queries'
import type { Agent } from '../../api/schema'
import type { Column } from '../../ui/data-table'
import { useListRows } from '../../ui/list-rows'
import { ListTable } from '../../ui/list-table'
import { RelativeTime } from '../../ui/relative-time'
import { Screen } from '../../ui/screen'
import { StateTag } from '../../ui/state-tag'
import { ECHO_SOURCE_ID, sourcesQuery, toAgentName } from '../ai-queries'
import { NoSource } from '../no-source'

const toColumns = (sourceNames: Map<string, string>): Column<Agent>[] => [
  { key: 'name', label: 'Name', width: 200, render: toAgentName },
  {
    ...{ key: 'active', label: 'State', width: 90 },
    render: ({ active }) => <StateTag label={active ? 'Active' : 'Off'} tone={active ? 'good' : 'neutral'} />,
  },
  {
    ...{ key: 'model', label: 'Model', width: 220 },
    render: ({ model, sourceId }) =>
      [sourceNames.get(sourceId) ?? sourceId.slice(0, 8), model].filter(Boolean).join(' · '),
  },
  { key: 'description', label: 'Description', width: 260, render: ({ description }) => description },
  { key: 'updated', label: 'Changed', width: 120, render: ({ updated }) => <RelativeTime time={updated} /> },
]

/** All agents that the user may talk to. */
export function Agents() {
  const navigate = useNavigate()
  const { id } = useParams({ strict: false })
  const { data: me } = useQuery(meQuery)
  const isAdmin = !!me?.isPrivileged
  const sources = useQuery({ ...sourcesQuery, enabled: isAdmin })
  const list = useListRows<Agent>(['agents', 'list'], (query) => api.GET('/api/ai/agents', { params: { query } }))
  const openNew = () => navigate({ to: '/ai/agents/new' })
  useHotkeys([['n', () => void (isAdmin && openNew())]])
  if (list.isEmpty && sources.data?.length === 0 && !location.pathname.endsWith('/new'))
    return <NoSource title="Agents" />
  const sourceNames = new Map([
    [ECHO_SOURCE_ID, 'Echo'],
    ...(sources.data ?? []).map(({ _id, name }): [string, string] => [_id, name]),
  ])
  return (
    <Screen
      title="Agents"
      request={{ method: 'GET', path: '/api/ai/agents' }}
      actions={
        isAdmin && (
          <>
            <Button variant="default" onClick={() => navigate({ to: '/ai/mcp' })}>
              Connect assistants
            </Button>
            <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
              New agent
            </Button>
          </>
        )
      }
    >
      <ListTable
        label="Agents"
        list={list}
        columns={toColumns(sourceNames)}
        rowKey={({ _id }) => _id}
        activeKey={id}
        onOpen={({ _id }) =>
          isAdmin
            ? navigate({ to: '/ai/agents/$id', params: { id: _id } })
            : navigate({ to: '/ai/playground', search: { agent: _id } as never })
        }
        empty={{
          text: 'There are no agents yet. An agent is a model with instructions and tools.',
          action: isAdmin ? { label: 'Create an agent', onClick: openNew } : undefined,
        }}
      />
      <Outlet key={id} />
    </Screen>
  )
}
