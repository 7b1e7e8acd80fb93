import { Anchor, Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { IconArrowUpRight, IconLink } from '@tabler/icons-react'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { entitySearchQuery, toEntityLabel } from '../data/entity-queries'
import { REFERENCE_OPERATORS } from '../data/operators'
import type { FieldKind, InputProps } from './field-kind'

/** Chooses an entity of the target by searching its texts. */
function RelationInput({ field, value, onChange, ...rest }: InputProps) {
  const [search, setSearch] = useState('')
  const [query] = useDebouncedValue(search, 150)
  const { data: found = [] } = useQuery({
    ...entitySearchQuery(field.target ?? '', query),
    placeholderData: keepPreviousData,
  })
  const chosen = typeof value === 'string' ? value : null
  const options = found.map((entity) => ({ value: entity.identifier, label: toEntityLabel(entity) }))
  if (chosen && !options.some((option) => option.value === chosen)) options.unshift({ value: chosen, label: chosen })
  return (
    <Select
      {...rest}
      data={options}
      value={chosen}
      onChange={(next) => onChange(next ?? undefined)}
      searchable
      clearable={!field.required}
      onSearchChange={setSearch}
      filter={({ options: all }) => all}
      nothingFoundMessage="Nothing was found."
    />
  )
}

export const relation: FieldKind = {
  label: 'Relation',
  icon: IconLink,
  operators: REFERENCE_OPERATORS,
  width: 160,
  Cell: ({ field, value }) => (
    <Anchor
      component={Link}
      to={`/data/${encodeURIComponent(field.target ?? '')}/${encodeURIComponent(String(value))}`}
      size="sm"
      onClick={(event) => event.stopPropagation()}
    >
      {String(value)}
      <IconArrowUpRight size={12} aria-hidden />
    </Anchor>
  ),
  Input: RelationInput,
}
