import { Table } from '@mantine/core'
import { formatCost } from '../playground/message'
import classes from './usage.module.css'
import type { UsageRow } from './usage-chart'

const HEADERS = ['Answers', 'Input tokens', 'Output tokens', 'All tokens', 'Cost']

/** The numbers of the chart, with their sums. */
export function UsageTable({ rows, label }: { rows: UsageRow[]; label: string }) {
  const sum = (key: Exclude<keyof UsageRow, 'key' | 'name'>) => rows.reduce((total, row) => total + row[key], 0)
  const all = {
    ...{ key: '', name: 'Total', count: sum('count'), cost: sum('cost'), totalTokens: sum('totalTokens') },
    ...{ promptTokens: sum('promptTokens'), completionTokens: sum('completionTokens') },
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className={classes.scroller} aria-label="Numbers" tabIndex={0}>
      <Table fz="sm" className={classes.table}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{label}</Table.Th>
            {HEADERS.map((header) => (
              <Table.Th key={header} ta="right">
                {header}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <NumberRow key={row.key} row={row} />
          ))}
        </Table.Tbody>
        {rows.length > 1 && (
          <Table.Tfoot>
            <NumberRow row={all} />
          </Table.Tfoot>
        )}
      </Table>
    </section>
  )
}

const NumberRow = ({ row: { name, count, promptTokens, completionTokens, totalTokens, cost } }: { row: UsageRow }) => (
  <Table.Tr>
    <Table.Td>{name}</Table.Td>
    {[count, promptTokens, completionTokens, totalTokens].map((number, n) => (
      <Table.Td key={n} ta="right">
        {number.toLocaleString()}
      </Table.Td>
    ))}
    <Table.Td ta="right">{cost ? formatCost(cost) : '–'}</Table.Td>
  </Table.Tr>
)
