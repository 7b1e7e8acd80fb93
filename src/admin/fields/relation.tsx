import { MultiSelect, Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { IconArrowUpRight, IconLink } from '@tabler/icons-react'
import { keepPreviousData, useQueries, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type MouseEvent, useState } from 'react'
import { toEntityLabel } from '../data/entity-label'
import { entitySearchQuery } from '../data/entity-queries'
import { entityLabelQuery } from '../data/label-queries'
import { REFERENCE_OPERATORS } from '../data/operators'
import type { CellProps, FieldKind, InputProps } from './field-kind'
import classes from './relation.module.css'

/** Returns the entities to choose from by what is typed, with those that are chosen already. */
function useChoices(target: string, chosen: string[]) {
  const [search, setSearch] = useState('')
  const [query] = useDebouncedValue(search, 150)
  const labels = useQueries({ queries: chosen.map((identifier) => entityLabelQuery(target, identifier)) })
  const chosenOptions = chosen.map((value, n) => ({ value, label: labels[n]?.data ?? value }))
  // The label of what is chosen is no search for it.
  const words = chosenOptions.some(({ label }) => label === query) ? '' : query
  const { data: found = [] } = useQuery({ ...entitySearchQuery(target, words), placeholderData: keepPreviousData })
  const others = found.filter(({ identifier }) => !chosen.includes(identifier))
  return {
    setSearch,
    data: [...chosenOptions, ...others.map((one) => ({ value: one.identifier, label: toEntityLabel(one) }))],
  }
}

const NOTHING_FOUND = 'No results.'

/** Chooses an entity of the target by searching its texts. */
function RelationInput({ field, value, onChange, ...rest }: InputProps) {
  const chosen = typeof value === 'string' ? value : null
  const { data, setSearch } = useChoices(field.target ?? '', chosen === null ? [] : [chosen])
  return (
    <Select
      {...rest}
      data={data}
      value={chosen}
      onChange={(next) => onChange(next ?? undefined)}
      searchable
      clearable={!field.required}
      onSearchChange={setSearch}
      filter={({ options }) => options}
      nothingFoundMessage={NOTHING_FOUND}
    />
  )
}

/** Chooses several entities of the target. */
function RelationListInput({ field, value, onChange, ...rest }: InputProps) {
  const chosen = Array.isArray(value) ? value.map(String) : []
  const { data, setSearch } = useChoices(field.target ?? '', chosen)
  return (
    <MultiSelect
      {...rest}
      data={data}
      value={chosen}
      onChange={(next) => onChange(next.length ? next : undefined)}
      searchable
      clearable={!field.required}
      onSearchChange={setSearch}
      filter={({ options }) => options}
      nothingFoundMessage={NOTHING_FOUND}
    />
  )
}

/** The label of an entity as a link to it. */
function RelationCell({ field, value }: CellProps) {
  const navigate = useNavigate()
  const [target, identifier] = [field.target ?? '', String(value)]
  const { data: label } = useQuery(entityLabelQuery(target, identifier))
  const path = `/data/${encodeURIComponent(target)}/${encodeURIComponent(identifier)}`
  const open = (event: MouseEvent) => {
    event.stopPropagation()
    if (event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    void navigate({ to: path })
  }
  return (
    <a className={classes.link} href={`/admin${path}`} onClick={open} title={identifier}>
      <bdi className={classes.label}>{label ?? identifier}</bdi>
      <IconArrowUpRight size={12} className={classes.arrow} aria-hidden />
    </a>
  )
}

export const relation: FieldKind = {
  label: 'Relation',
  icon: IconLink,
  operators: REFERENCE_OPERATORS,
  width: 160,
  Cell: RelationCell,
  Input: RelationInput,
  ListInput: RelationListInput,
}
