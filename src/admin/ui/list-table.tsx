import { Text } from '@mantine/core'
import { DataTable, type DataTableProps } from './data-table'
import { EmptyState, type EmptyStateProps } from './empty-state'
import type { useListRows } from './list-rows'
import classes from './list-table.module.css'
import { ProblemMessage } from './problem-message'

type ListTableProps<Row> = Omit<DataTableProps<Row>, 'count' | 'rowAt' | 'onRangeChange'> & {
  list: ReturnType<typeof useListRows<Row>>
  /** What stands there while the list has no rows. */
  empty: EmptyStateProps
}

/** A list of the server as a table, with how many rows were fetched, its error, or what to do while it is empty. */
export function ListTable<Row>({ list, empty, ...table }: ListTableProps<Row>) {
  return (
    <div className={classes.list}>
      {list.error && <ProblemMessage error={list.error} />}
      {list.isEmpty ? (
        <EmptyState {...empty} />
      ) : (
        <DataTable {...table} count={list.count} rowAt={list.rowAt} onRangeChange={list.onRangeChange} />
      )}
      <Text size="xs" c="dimmed" px="md" py={6} role="status">
        {list.count > 0 && `${list.count.toLocaleString()}${list.hasMore ? ' and more' : ''}`}
      </Text>
    </div>
  )
}
