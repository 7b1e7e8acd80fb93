import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { userQuery, userSearchQuery } from '../people/user-queries'
import { roleNamesQuery } from './design-queries'

type CallerSelectProps = { value: string; onChange: (value: string) => void }

type NamedUser = { username?: string; fullName?: string; email?: string; _id: string }

const toLabel = ({ fullName, username, email, _id }: NamedUser) => {
  const login = username || email || _id
  return fullName && fullName !== login ? `${fullName} (${login})` : login
}

/** Chooses a guest, a role or a user: `guest`, `role:editor`, `user:<id>`. */
export function CallerSelect({ value, onChange }: CallerSelectProps) {
  const [search, setSearch] = useState('')
  const [words] = useDebouncedValue(search, 150)
  const chosenUser = value.startsWith('user:') ? value.slice(5) : ''
  const { data: roles = [] } = useQuery(roleNamesQuery)
  const { data: chosen } = useQuery({ ...userQuery(chosenUser), enabled: chosenUser !== '' })
  // The name of what is chosen is in the box, and nobody searches for it.
  const query = /[()]|^(A guest|Role )/.test(words) ? '' : words
  const { data: found = [] } = useQuery({ ...userSearchQuery(query), placeholderData: keepPreviousData })
  const users: NamedUser[] = chosen && !found.some(({ _id }) => _id === chosen._id) ? [chosen, ...found] : found
  const chosenRole = value.startsWith('role:') ? value.slice(5) : undefined
  const shownRoles = new Set([...roles.filter((role) => role.includes(query)), ...(chosenRole ? [chosenRole] : [])])
  return (
    <Select
      label="See as"
      w={240}
      searchable
      allowDeselect={false}
      data={[
        { value: 'guest', label: 'A guest' },
        { group: 'Roles', items: [...shownRoles].map((role) => ({ value: `role:${role}`, label: `Role ${role}` })) },
        { group: 'Users', items: users.map((user) => ({ value: `user:${user._id}`, label: toLabel(user) })) },
      ]}
      value={value}
      filter={({ options }) => options}
      onSearchChange={setSearch}
      onChange={(next) => next && onChange(next)}
      maxDropdownHeight={320}
    />
  )
}
