import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, fetchData } from '../api/client'
import type { Field } from '../api/schema'
import type { FormField } from '../fields/field-form'
import type { InputProps } from '../fields/field-kind'
import { userLabelQuery, workspaceLabelQuery } from './label-queries'

const MAX_SUGGESTIONS = 20

const userSearchQuery = (words: string) => ({
  queryKey: ['users', 'choice', words],
  queryFn: async () => {
    const query = { limit: MAX_SUGGESTIONS, select: 'username,fullName', ...(words && { q: words }) }
    return fetchData(api.GET('/api/users', { params: { query } }))
  },
})

const workspacesQuery = {
  queryKey: ['workspaces', 'choice'],
  queryFn: () => fetchData(api.GET('/api/workspaces', { params: { query: { limit: 1_000 } } })),
}

/** Chooses a user by searching their names. */
function UserInput({ field: _, value, onChange, ...rest }: InputProps) {
  const [search, setSearch] = useState('')
  const [words] = useDebouncedValue(search, 150)
  const chosen = typeof value === 'string' && value ? value : null
  const { data: label } = useQuery({ ...userLabelQuery(chosen ?? ''), enabled: chosen !== null })
  const { data: found = [] } = useQuery({
    ...userSearchQuery(words === label ? '' : words),
    placeholderData: keepPreviousData,
  })
  const options = found.map(({ _id, fullName, username }) => ({ value: _id, label: fullName || username || _id }))
  if (chosen && !options.some((option) => option.value === chosen))
    options.unshift({ value: chosen, label: label ?? chosen })
  return (
    <Select
      {...rest}
      data={options}
      value={chosen}
      onChange={(next) => onChange(next ?? undefined)}
      searchable
      onSearchChange={setSearch}
      filter={({ options: all }) => all}
      nothingFoundMessage="No results."
    />
  )
}

/** Chooses a workspace. */
function WorkspaceInput({ field: _, value, onChange, ...rest }: InputProps) {
  const { data: workspaces = [] } = useQuery(workspacesQuery)
  return (
    <Select
      {...rest}
      data={workspaces.map(({ _id, name }) => ({ value: _id, label: name }))}
      value={typeof value === 'string' ? value : null}
      onChange={(next) => onChange(next ?? undefined)}
      searchable
    />
  )
}

/** What every entity has beside its fields, as fields that lists show and filter by. */
export const systemFields: FormField[] = [
  { key: 'identifier', type: 'string' },
  { key: 'created', type: 'datetime' },
  { key: 'updated', type: 'datetime' },
  { key: 'user', type: 'string', title: 'owner', Input: UserInput },
  { key: 'workspace', type: 'string', Input: WorkspaceInput },
]

const SYSTEM_KEYS = systemFields.map(({ key }) => key)

/** Returns whether a field belongs to every entity; blueprints cannot have fields with these keys. */
export const isSystemField = ({ key }: Field) => SYSTEM_KEYS.includes(key)

/** The name of a user or a workspace, or its id until it is known. */
export const OwnerLabel = ({ field, id }: { field: Field; id: string }) =>
  field.key === 'workspace' ? <WorkspaceLabel id={id} /> : <UserLabel id={id} />

const shorten = (id: string) => `${id.slice(0, 8)}…`

/** The name of a user. */
export function UserLabel({ id }: { id: string }) {
  const { data: label } = useQuery(userLabelQuery(id))
  return <bdi title={id}>{label ?? shorten(id)}</bdi>
}

function WorkspaceLabel({ id }: { id: string }) {
  const { data: label } = useQuery(workspaceLabelQuery(id))
  return <bdi title={id}>{label ?? shorten(id)}</bdi>
}
