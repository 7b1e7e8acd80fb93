import { Button, SegmentedControl } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Outlet, useParams } from '@tanstack/react-router'
import { api } from '../api/client'
import { meQuery } from '../api/queries'
import type { WorkspaceSummary } from '../api/schema'
import type { Column } from '../ui/data-table'
import { type PageRequest, useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { SearchBox } from '../ui/search-box'
import { RoleTags } from './role-tags'
import { useWorkspaceListNavigation } from './workspace-list-navigation'
import type { WorkspacesSearch } from './workspace-queries'

const SHOWN_FIELDS = 'name,labels,created,updated'

const columns: Column<WorkspaceSummary>[] = [
  { key: 'name', label: 'Name', width: 280, isSortable: true, render: ({ name }) => name },
  { key: 'labels', label: 'Labels', width: 240, render: ({ labels }) => <RoleTags roles={labels} /> },
  {
    key: 'created',
    label: 'Created',
    width: 140,
    isSortable: true,
    render: ({ created }) => created && <RelativeTime time={created} />,
  },
  {
    key: 'updated',
    label: 'Changed',
    width: 140,
    isSortable: true,
    render: ({ updated }) => updated && <RelativeTime time={updated} />,
  },
]

/** Returns the request of the list: all workspaces for admins who want them, else those of the user. */
function toRequest({ q, labels, sort }: WorkspacesSearch, isAll: boolean) {
  const query = isAll ? { q, labels, sort, select: SHOWN_FIELDS } : { sort }
  const known = Object.fromEntries(Object.entries(query).filter(([, value]) => value)) as Record<string, string>
  return { method: 'GET', path: isAll ? '/api/workspaces/all' : '/api/workspaces', query: known } as const
}

async function fetchPage({ path, query }: ReturnType<typeof toRequest>, page: PageRequest) {
  const { data, response } = await api.GET(path, { params: { query: { ...query, ...page } } })
  return { data: data as WorkspaceSummary[] | undefined, response }
}

/** The workspaces: all of the tenant for admins, and their own for everybody. */
export function Workspaces() {
  const { search, changeSearch, openWorkspace, openNew } = useWorkspaceListNavigation()
  const { workspace } = useParams({ strict: false })
  const { data: me } = useQuery(meQuery)
  const isAdmin = !!me?.isPrivileged
  const isAll = isAdmin && !search.mine
  const request = toRequest(search, isAll)
  const list = useListRows(['workspaces', 'list', request], (page) => fetchPage(request, page))
  useHotkeys([['n', openNew]])
  const isFiltered = isAll && (!!search.q || !!search.labels)
  return (
    <Screen
      title="Workspaces"
      request={request}
      actions={
        <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
          New
        </Button>
      }
      toolbar={
        isAdmin && (
          <>
            {isAll && (
              <SearchBox label="Search workspaces" value={search.q} onSearch={(q) => changeSearch({ ...search, q })} />
            )}
            <SegmentedControl
              size="xs"
              aria-label="Shown workspaces"
              data={[
                { value: '', label: 'All' },
                { value: 'true', label: 'Yours' },
              ]}
              value={search.mine ?? ''}
              onChange={(mine) => changeSearch({ sort: search.sort, mine })}
            />
          </>
        )
      }
    >
      <ListTable
        label="Workspaces"
        list={list}
        columns={columns}
        rowKey={({ _id }) => _id}
        sort={search.sort ?? '-created'}
        onSort={(sort) => changeSearch({ ...search, sort })}
        activeKey={workspace}
        onOpen={({ _id }) => openWorkspace(_id)}
        empty={
          isFiltered
            ? { text: 'No workspace matches.', action: { label: 'Show all', onClick: () => changeSearch({}) } }
            : {
                text: isAll
                  ? 'No workspaces yet. A workspace represents a team, a company or a household.'
                  : 'You are a member of no workspace.',
                action: { label: 'Create a workspace', onClick: openNew },
              }
        }
      />
      <Outlet key={workspace} />
    </Screen>
  )
}
