import { Anchor, Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { IconBuilding, IconUser } from '@tabler/icons-react'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import type { UserSummary, Workspace } from '../api/schema'
import { type Payer, payerNameQuery, toUserLabel, userSearchQuery, workspaceChoiceQuery } from './payer-queries'

const TYPING_PAUSE_MS = 150
const WORDS = { user: 'User', workspace: 'Workspace' }

/** The name of who pays, with a sign of what it is. */
export function PayerName({ payer }: { payer: Payer }) {
  const { data: name = '…' } = useQuery(payerNameQuery(payer))
  const Icon = payer.billableEntityType === 'user' ? IconUser : IconBuilding
  return (
    <span>
      <Icon size={14} role="img" aria-label={WORDS[payer.billableEntityType]} style={{ verticalAlign: '-2px' }} />{' '}
      {name}
    </span>
  )
}

/** The name of who pays as a link to them. */
export const PayerLink = ({ payer }: { payer: Payer }) => (
  <Anchor component={Link} to={`/people/${payer.billableEntityType}s/${payer.billableEntityId}` as never} size="sm">
    <PayerName payer={payer} />
  </Anchor>
)

type PayerSelectProps = {
  label: string
  placeholder?: string
  size?: 'xs' | 'sm'
  error?: string
  required?: boolean
  value?: Payer
  onChange(payer: Payer | undefined): void
}

const toValue = ({ billableEntityType: type, billableEntityId: id }: Payer) => `${type}:${id}`

const NOBODY: UserSummary[] = []
const NO_WORKSPACES: Workspace[] = []

/** Returns the choices in groups. Who is chosen stays among them, whatever is searched. */
function toGroups(
  users: readonly UserSummary[],
  workspaces: readonly Workspace[],
  words: string,
  chosen: { payer: Payer; label: string } | undefined,
) {
  const items = {
    user: users.map((user) => ({ value: `user:${user._id}`, label: toUserLabel(user) })),
    workspace: workspaces
      .filter(({ name }) => name.toLowerCase().includes(words.toLowerCase()))
      .map(({ _id, name }) => ({ value: `workspace:${_id}`, label: name })),
  }
  const value = chosen && toValue(chosen.payer)
  if (chosen && value && ![...items.user, ...items.workspace].some((item) => item.value === value))
    items[chosen.payer.billableEntityType].unshift({ value, label: chosen.label })
  return [
    { group: 'Users', items: items.user },
    { group: 'Workspaces', items: items.workspace },
  ].filter((group) => group.items.length > 0)
}

/** Chooses a user or a workspace by searching their names. */
export function PayerSelect({ label, placeholder, size = 'sm', error, required, value, onChange }: PayerSelectProps) {
  const [search, setSearch] = useState('')
  const [words] = useDebouncedValue(search, TYPING_PAUSE_MS)
  const { data: users = NOBODY } = useQuery({ ...userSearchQuery(words), placeholderData: keepPreviousData })
  const { data: workspaces = NO_WORKSPACES } = useQuery(workspaceChoiceQuery)
  const { data: chosenName } = useQuery({
    ...payerNameQuery(value ?? { billableEntityType: 'user', billableEntityId: '' }),
    enabled: !!value,
  })
  const groups = useMemo(
    () => toGroups(users, workspaces, words, value && { payer: value, label: chosenName ?? '…' }),
    [users, workspaces, words, value, chosenName],
  )
  return (
    <Select
      size={size}
      w={size === 'xs' ? 200 : undefined}
      label={size === 'xs' ? undefined : label}
      aria-label={label}
      placeholder={placeholder}
      error={error}
      required={required}
      data={groups}
      value={value ? toValue(value) : null}
      onChange={(next) => {
        const [type, id = ''] = next?.split(':') ?? []
        onChange(type ? { billableEntityType: type as Payer['billableEntityType'], billableEntityId: id } : undefined)
      }}
      searchable
      clearable
      clearButtonProps={{ 'aria-label': `Remove ${label}` }}
      onSearchChange={setSearch}
      filter={({ options }) => options}
      nothingFoundMessage="No results."
    />
  )
}
