import { Button, Text, TextInput } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus, IconSearch } from '@tabler/icons-react'
import { keepPreviousData, useQueries, useQuery } from '@tanstack/react-query'
import { getRouteApi, Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { useMemo, useRef, useState } from 'react'
import { blueprintQuery } from '../api/queries'
import type { Entity, Field } from '../api/schema'
import { ChartButton } from '../charts/chart-button'
import { TransferMenu } from '../transfer/transfer-menu'
import { DataTable } from '../ui/data-table'
import { EmptyState } from '../ui/empty-state'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { BlueprintTabs } from './blueprint-tabs'
import { toColumns } from './columns'
import { entityCountQuery, entityPageQuery, type ListSearch, PAGE_SIZE } from './entity-queries'
import { FilterBar } from './filter-bar'
import { readFilters } from './filters'

const route = getRouteApi('/frame/data/$blueprint')

/** Returns access to the rows of a list by their index; pages are fetched when they come into view. */
function useRows(blueprint: string, search: ListSearch) {
  const [range, setRange] = useState({ first: 0, last: 40 })
  const count = useQuery({ ...entityCountQuery(blueprint, search), placeholderData: keepPreviousData })
  const [from, to] = [Math.floor(range.first / PAGE_SIZE), Math.floor(range.last / PAGE_SIZE)]
  const pages = Array.from({ length: to - from + 1 }, (_, n) => from + n)
  const loaded = useQueries({ queries: pages.map((page) => entityPageQuery(blueprint, search, page)) })
  const byPage = new Map(loaded.map(({ data }, n) => [from + n, data]))
  return {
    count: count.data ?? 0,
    isPending: count.isPending,
    error: count.error ?? loaded.find(({ error }) => error)?.error,
    rowAt: (index: number): Entity | undefined => byPage.get(Math.floor(index / PAGE_SIZE))?.[index % PAGE_SIZE],
    setRange: (first: number, last: number) =>
      setRange((now) => (now.first === first && now.last === last ? now : { first, last })),
  }
}

/** The entities of a blueprint. Filters, order and search are in the address, as programs write them. */
export function Entities() {
  const { blueprint: key } = route.useParams()
  const search = route.useSearch() as ListSearch
  const { identifier } = useParams({ strict: false })
  const navigate = useNavigate()
  const blueprint = useQuery(blueprintQuery(key))
  const rows = useRows(key, search)
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [widths, setWidths] = useState<Record<string, number>>({})
  const searchBox = useRef<HTMLInputElement>(null)
  const fields: Field[] = blueprint.data?.fields ?? []
  const columns = useMemo(() => toColumns(fields, widths), [fields, widths])
  const changeSearch = (next: ListSearch) => navigate({ to: '.', search: next as never, replace: true })
  const open = (to: string) =>
    navigate({
      to: '/data/$blueprint/$identifier',
      params: { blueprint: key, identifier: to },
      search: search as never,
    })
  const openNew = () =>
    navigate({ to: '/data/$blueprint/all/new', params: { blueprint: key }, search: search as never })
  useHotkeys([
    ['/', () => searchBox.current?.focus()],
    ['n', openNew],
  ])
  if (blueprint.error) return <ProblemMessage error={blueprint.error} />
  const name = blueprint.data?.name ?? ''
  const isFiltered = readFilters(search).length > 0 || !!search.$q
  return (
    <Screen
      title={name}
      actions={
        <>
          <TextInput
            ref={searchBox}
            size="xs"
            aria-label={`Search ${name}`}
            placeholder="Search"
            leftSection={<IconSearch size={14} />}
            defaultValue={search.$q ?? ''}
            onKeyDown={(event) => {
              if (event.key === 'Enter') changeSearch({ ...search, $q: event.currentTarget.value })
            }}
          />
          <ChartButton blueprint={key} search={search} />
          <TransferMenu blueprint={key} search={search} />
          <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
            New
          </Button>
        </>
      }
      tabs={<BlueprintTabs blueprint={key} current="Entities" />}
      toolbar={<FilterBar fields={fields} search={search} onChange={changeSearch} />}
    >
      <div className="entities">
        {rows.error ? <ProblemMessage error={rows.error} /> : null}
        {!rows.isPending && rows.count === 0 ? (
          <EmptyState
            text={isFiltered ? 'No entity matches these filters.' : `There are no ${name.toLowerCase()} yet.`}
            action={
              isFiltered
                ? { label: 'Clear filters', onClick: () => changeSearch({}) }
                : { label: 'Add the first', onClick: openNew }
            }
          />
        ) : (
          <DataTable
            label={name}
            columns={columns}
            count={rows.count}
            rowAt={rows.rowAt}
            rowKey={({ identifier: each }) => each}
            onRangeChange={rows.setRange}
            sort={search.$sort ?? '-created'}
            onSort={($sort) => changeSearch({ ...search, $sort })}
            selected={selected}
            onSelect={setSelected}
            activeKey={identifier}
            onOpen={(row) => open(row.identifier)}
            onResize={(column, width) => setWidths((all) => ({ ...all, [column]: width }))}
          />
        )}
        <Text size="xs" c="dimmed" px="md" py={6} role="status">
          {rows.count.toLocaleString()} {isFiltered ? 'shown' : name.toLowerCase()}
          {selected.size ? ` · ${selected.size} marked` : ''}
        </Text>
      </div>
      <Outlet key={`${key}/${identifier}`} />
    </Screen>
  )
}
