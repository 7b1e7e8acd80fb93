import { Button } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { useMemo } from 'react'
import { ApiProblem } from '../api/problem'
import { blueprintQuery } from '../api/queries'
import type { Blueprint } from '../api/schema'
import { ChartButton } from '../charts/chart-button'
import { TransferMenu } from '../transfer/transfer-menu'
import { DataTable } from '../ui/data-table'
import { EmptyState } from '../ui/empty-state'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { BlueprintTabs } from './blueprint-tabs'
import { BulkBar } from './bulk-bar'
import { useColumnLayout } from './column-layout'
import { ColumnMenu } from './column-menu'
import { toColumns } from './columns'
import type { ListSearch } from './entity-queries'
import { useEntityRows } from './entity-rows'
import { useFieldAccess } from './field-access'
import { FilterBar } from './filter-bar'
import { readFilters, toListQuery } from './filters'
import { useInlineEdit } from './inline-edit'
import { ListFoot } from './list-foot'
import { ListNeighbor } from './list-neighbor'
import { ListSearchBox } from './list-search'
import { useLiveEntities } from './live-entities'
import { useMarks } from './marks'

const route = getRouteApi('/frame/data/$blueprint')

/** The entities of a blueprint. Filters, order and search are in the address, as programs write them. */
export function Entities() {
  const { blueprint: key } = route.useParams()
  const { data: blueprint, error } = useQuery(blueprintQuery(key))
  if (error) return <ProblemMessage error={error} />
  if (!blueprint) return <Screen title="">{null}</Screen>
  return <EntityList key={key} blueprint={blueprint} />
}

/** Returns functions that lead to an entity beside the list, to a form for a new one, or to other filters. */
function useListNavigation(blueprint: string, search: ListSearch) {
  const navigate = useNavigate()
  const params = { blueprint }
  const address = search as never
  return {
    changeSearch: (next: ListSearch) => navigate({ to: '.', search: next as never, replace: true }),
    open: (identifier: string, replace = false) =>
      navigate({ to: '/data/$blueprint/$identifier', params: { blueprint, identifier }, search: address, replace }),
    openNew: () => navigate({ to: '/data/$blueprint/all/new', params, search: address }),
  }
}

/** The server's refusal of a filter stands at the filters. */
const isFilterFlaw = (error: unknown) =>
  error instanceof ApiProblem && error.status === 400 && error.fieldErrors.length > 0

function EntityList({ blueprint }: { blueprint: Blueprint }) {
  const { key, name, fields } = blueprint
  const search = route.useSearch() as ListSearch
  const { identifier } = useParams({ strict: false })
  const { changeSearch, open, openNew } = useListNavigation(key, search)
  const query = toListQuery(search)
  const rows = useEntityRows(key, query)
  const live = useLiveEntities(key, query)
  const listKey = JSON.stringify(query)
  const marks = useMarks(rows, listKey)
  const layout = useColumnLayout(key, fields)
  const isEditable = useFieldAccess(blueprint)
  const inline = useInlineEdit(blueprint, isEditable)
  const [shownKeys, widths] = [layout.shown.join(), JSON.stringify(layout.widths)]
  const columns = useMemo(
    () => toColumns(layout.all.slice(0, layout.shown.length), layout.widths, isEditable),
    // The layout is another object at each rendering.
    [fields, shownKeys, widths, isEditable],
  )
  useHotkeys([['n', () => void openNew()]])
  const findNeighbor = (of: string, by: 1 | -1) => {
    const index = rows.indexOf(of)
    return index === undefined ? undefined : rows.rowAt(index + by)?.identifier
  }
  const isFiltered = readFilters(search).length > 0 || !!search.$q
  const filterError = isFilterFlaw(rows.error) ? rows.error : undefined
  const isEmpty = !rows.isPending && rows.count === 0 && !rows.error
  return (
    <Screen
      title={name}
      request={{ method: 'GET', path: `/api/blueprints/${key}/entities`, query }}
      actions={
        <>
          <ListSearchBox name={name} words={search.$q ?? ''} onChange={($q) => changeSearch({ ...search, $q })} />
          <ColumnMenu layout={layout} />
          <ChartButton blueprint={key} search={search} />
          <TransferMenu blueprint={key} search={search} />
          <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
            New
          </Button>
        </>
      }
      tabs={<BlueprintTabs blueprint={key} current="Entities" />}
      toolbar={<FilterBar fields={fields} search={search} onChange={changeSearch} error={filterError} />}
    >
      <div className="entities">
        {rows.error && !filterError ? <ProblemMessage error={rows.error} /> : null}
        {isEmpty ? (
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
            count={filterError ? 0 : rows.count}
            listKey={listKey}
            rowAt={rows.rowAt}
            rowKey={({ identifier: each }) => each}
            onRangeChange={rows.setVisible}
            sort={search.$sort ?? '-created'}
            onSort={($sort) => changeSearch({ ...search, $sort })}
            hasSeveralSorts
            selected={marks.keys}
            onSelect={marks.mark}
            listMarkable={marks.listMarkable}
            activeKey={identifier}
            onOpen={(row) => open(row.identifier, identifier !== undefined)}
            onFocusRow={(row) => identifier !== undefined && open(row.identifier, true)}
            onResize={layout.resize}
            onEdit={(row, column) => inline.begin(row, column)}
            editor={inline.editor}
            glowing={live.glowing}
          />
        )}
        <BulkBar
          blueprint={blueprint}
          editable={fields.filter(isEditable)}
          query={query}
          total={rows.count}
          marks={marks}
        />
        <ListFoot count={rows.count} isFiltered={isFiltered} name={name} live={live.state} />
      </div>
      <ListNeighbor value={findNeighbor}>
        <Outlet key={`${key}/${identifier}`} />
      </ListNeighbor>
    </Screen>
  )
}
