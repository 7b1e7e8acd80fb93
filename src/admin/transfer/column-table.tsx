import { Table } from '@mantine/core'
import type { ReactNode } from 'react'
import type { RowFile } from './file-rows'
import classes from './transfer.module.css'

const ROWS_SHOWN = 6
const MAX_CELL_CHARACTERS = 80

const toText = (value: unknown) =>
  (typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)).slice(0, MAX_CELL_CHARACTERS)

type ColumnTableProps = {
  file: RowFile
  /** Whether a column is left out. */
  isUnused(column: string): boolean
  /** What is chosen for a column. */
  renderChoice(column: string): ReactNode
}

/** The first rows of a file, and above each column what becomes of it. */
export const ColumnTable = ({ file, isUnused, renderChoice }: ColumnTableProps) => (
  <section className={classes.preview} aria-label="First rows">
    <Table fz="sm" withRowBorders verticalSpacing={4}>
      <Table.Thead>
        <Table.Tr>
          {file.columns.map((column) => (
            <Table.Th key={column} className={classes.column} scope="col">
              <span title={column}>{column}</span>
              {renderChoice(column)}
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {file.sample.slice(0, ROWS_SHOWN).map(({ row, values }) => (
          <Table.Tr key={row}>
            {file.columns.map((column) => (
              <Table.Td key={column} className={`${classes.cell} ${isUnused(column) ? classes.unused : ''}`}>
                {toText(values[column])}
              </Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  </section>
)
