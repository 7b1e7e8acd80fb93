import { Button, MultiSelect, Text } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Outlet, useParams } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { readList, writeList } from '../../core/list-text'
import { api } from '../api/client'
import type { UserSummary } from '../api/schema'
import type { Column } from '../ui/data-table'
import { type PageRequest, useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { SearchBox } from '../ui/search-box'
import { MarkedUsers } from './marked-users'
import classes from './people.module.css'
import { RoleTags } from './role-tags'
import { useUserListNavigation } from './user-list-navigation'
import { rolesQuery, type UsersSearch, userStatsQuery } from './user-queries'

const columns: Column<UserSummary>[] = [
  { key: 'username', label: 'Username', width: 180, isSortable: true, render: ({ username }) => username },
  { key: 'fullName', label: 'Name', width: 200, render: ({ fullName, name }) => fullName || name },
  { key: 'email', label: 'E-mail address', width: 240, isSortable: true, render: ({ email }) => email },
  { key: 'roles', label: 'Roles', width: 220, render: ({ roles }) => <RoleTags roles={roles} /> },
  {
    key: 'created',
    label: 'Created',
    width: 140,
    isSortable: true,
    render: ({ created }) => created && <RelativeTime time={created} />,
  },
]

const fetchPage = (search: UsersSearch, page: PageRequest) =>
  api.GET('/api/users', { params: { query: { ...page, ...search } } })

/** All users. Search, order and roles are in the address, as programs write them. */
export function Users() {
  const { search, changeSearch, openUser, openNew } = useUserListNavigation()
  const { user } = useParams({ strict: false })
  const list = useListRows(['users', 'list', search], (page) => fetchPage(search, page))
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  // Another list may not have the marked rows.
  useEffect(() => setSelected(new Set()), [search.q, search.roles, search.sort])
  useHotkeys([['n', openNew]])
  const isFiltered = !!search.q || !!search.roles
  return (
    <Screen
      title="Users"
      request={{ method: 'GET', path: '/api/users', query: search }}
      actions={
        <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
          New
        </Button>
      }
      toolbar={
        selected.size ? (
          <MarkedUsers users={list.rows.filter(({ _id }) => selected.has(_id))} onDone={() => setSelected(new Set())} />
        ) : (
          <>
            <SearchBox label="Search users" value={search.q} onSearch={(q) => changeSearch({ ...search, q })} />
            <RoleFilter value={search.roles} onChange={(roles) => changeSearch({ ...search, roles })} />
            <UserCounts />
          </>
        )
      }
    >
      <ListTable
        label="Users"
        list={list}
        columns={columns}
        rowKey={({ _id }) => _id}
        sort={search.sort ?? '-created'}
        onSort={(sort) => changeSearch({ ...search, sort })}
        selected={selected}
        onSelect={setSelected}
        activeKey={user}
        onOpen={({ _id }) => openUser(_id)}
        empty={
          isFiltered
            ? { text: 'No user matches.', action: { label: 'Show all users', onClick: () => changeSearch({}) } }
            : { text: 'There are no users yet.', action: { label: 'Create a user', onClick: openNew } }
        }
      />
      <Outlet key={user} />
    </Screen>
  )
}

type RoleFilterProps = { value?: string; onChange: (roles: string) => void }

function RoleFilter({ value = '', onChange }: RoleFilterProps) {
  const { data: roles = [] } = useQuery(rolesQuery)
  const chosen = value ? (readList(value) ?? []) : []
  return (
    <MultiSelect
      size="xs"
      aria-label="Filter by role"
      placeholder={chosen.length ? undefined : 'All roles'}
      className={classes.filter}
      data={[...new Set([...roles, ...chosen])]}
      value={chosen}
      onChange={(next) => onChange(writeList(next))}
      clearable
      searchable
    />
  )
}

/** How many users there are, how many registered lately and how many were active, in one line. */
function UserCounts() {
  const { data: stats } = useQuery(userStatsQuery)
  if (!stats) return null
  const { total, registered, active } = stats
  return (
    <Text size="xs" c="dimmed">
      {total.toLocaleString()} {total === 1 ? 'user' : 'users'} · {registered.lastWeek.toLocaleString()} registered this
      week · {active.lastDay.toLocaleString()} active today · {active.lastMonth.toLocaleString()} this month
    </Text>
  )
}
