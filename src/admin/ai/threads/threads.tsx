import { Select, Switch } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Outlet, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useEffect } from 'react'
import { api } from '../../api/client'
import { meQuery } from '../../api/queries'
import type { Thread } from '../../api/schema'
import type { Column } from '../../ui/data-table'
import { useListRows } from '../../ui/list-rows'
import { ListTable } from '../../ui/list-table'
import { RelativeTime } from '../../ui/relative-time'
import { Screen } from '../../ui/screen'
import { SearchBox } from '../../ui/search-box'
import { agentsQuery, toAgentName } from '../ai-queries'
import { usersQuery } from '../user-names'

/** Which threads a list has. The server does not search titles, so the page looks for the words in those it fetched. */
type ThreadSearch = { integration?: string; mine?: string; words?: string }

/** While fewer titles match, further pages are fetched. */
const MIN_MATCHES = 30

const toTitle = ({ title }: Thread) => title || 'Without a title'

function useNames(isAdmin: boolean) {
  const agents = useQuery(agentsQuery)
  const users = useQuery({ ...usersQuery, enabled: isAdmin })
  return {
    agents: agents.data ?? [],
    agentNames: new Map(agents.data?.map((agent) => [agent._id, toAgentName(agent)])),
    userNames: users.data,
  }
}

/** The conversations that the server keeps. Admins see those of all users. */
export function Threads() {
  const navigate = useNavigate()
  const search: ThreadSearch = useSearch({ strict: false })
  const { id } = useParams({ strict: false })
  const { data: me } = useQuery(meQuery)
  const isAdmin = !!me?.isPrivileged
  const { agents, agentNames, userNames } = useNames(isAdmin)
  const { integration, mine, words = '' } = search
  const filters = { ...(integration && { integration }), ...(mine && { bypassAdmin: true }) }
  const list = useListRows<Thread>(['threads', 'list', filters], (page) =>
    api.GET('/api/ai/threads', { params: { query: { ...page, ...filters } } }),
  )
  const matching = list.rows.filter((thread) => toTitle(thread).toLowerCase().includes(words.toLowerCase()))
  useEffect(() => {
    // Further pages may match.
    if (words && list.hasMore && matching.length < MIN_MATCHES) list.onRangeChange(0, list.count)
  }, [words, list.hasMore, list.count, matching.length])
  const changeSearch = (change: ThreadSearch) =>
    navigate({ to: '.', search: { ...search, ...change } as never, replace: true })
  const isFiltered = Object.keys(filters).length > 0 || words !== ''
  const columns: Column<Thread>[] = [
    { key: 'title', label: 'Title', width: 340, render: toTitle },
    {
      ...{ key: 'integration', label: 'Agent', width: 160 },
      render: ({ integration: agent }) => agentNames.get(agent) ?? agent.slice(0, 8),
    },
    ...(isAdmin
      ? [
          {
            key: 'user',
            label: 'User',
            width: 140,
            render: ({ user }: Thread) => userNames?.get(user) ?? user.slice(0, 8),
          },
        ]
      : []),
    { key: 'updated', label: 'Last message', width: 140, render: ({ updated }) => <RelativeTime time={updated} /> },
  ]
  return (
    <Screen
      title="Threads"
      request={{ method: 'GET', path: '/api/ai/threads', query: integration ? { integration } : undefined }}
      toolbar={
        <>
          <SearchBox label="Search titles" value={words} onSearch={(next) => changeSearch({ words: next })} />
          <Select
            size="xs"
            aria-label="Agent"
            placeholder="All agents"
            clearable
            searchable
            data={agents.map((agent) => ({ value: agent._id, label: toAgentName(agent) }))}
            value={integration ?? null}
            onChange={(chosen) => changeSearch({ integration: chosen ?? '' })}
          />
          {isAdmin && (
            <Switch
              size="xs"
              label="Only mine"
              checked={!!mine}
              onChange={(event) => changeSearch({ mine: event.currentTarget.checked ? 'true' : '' })}
            />
          )}
        </>
      }
    >
      <ListTable
        label="Threads"
        list={{
          ...list,
          count: matching.length,
          rowAt: (index) => matching[index],
          isEmpty: list.isEmpty || (!!words && !list.hasMore && !matching.length),
        }}
        columns={columns}
        rowKey={({ _id }) => _id}
        activeKey={id}
        onOpen={({ _id }) => navigate({ to: '/ai/threads/$id', params: { id: _id }, search: search as never })}
        empty={
          isFiltered
            ? {
                text: 'No thread matches.',
                action: {
                  label: 'Clear filters',
                  onClick: () => changeSearch({ integration: '', mine: '', words: '' }),
                },
              }
            : {
                text: 'There are no threads yet. A conversation with an agent becomes one.',
                action: { label: 'Open the playground', to: '/ai/playground' },
              }
        }
      />
      <Outlet key={id} />
    </Screen>
  )
}
