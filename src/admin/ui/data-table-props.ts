import type { ReactNode } from 'react'

export type Column<Row> = {
  key: string
  label: string
  width: number
  align?: 'right'
  isSortable?: boolean
  render(row: Row): ReactNode
  /** Whether the value can be edited in its cell. */
  isEditable?: boolean
}

/** The input that replaces one value while it is edited. */
export type CellEditor = { rowKey: string; column: string; content: ReactNode }

export type DataTableProps<Row> = {
  /** What the table holds, for assistive technology. */
  label: string
  columns: Column<Row>[]
  count: number
  /** Identifies the list; another one begins at its top. */
  listKey?: string
  /** Returns the row at an index, or undefined while it is loading. */
  rowAt(index: number): Row | undefined
  rowKey(row: Row): string
  /** Called with the first and the last row in view. */
  onRangeChange?(first: number, last: number): void
  /** The columns that the rows are sorted by, separated by commas, with `-` before one for descending. */
  sort?: string
  onSort?(sort: string): void
  /** Shift with a click sorts by a further column. */
  hasSeveralSorts?: boolean
  selected?: ReadonlySet<string>
  onSelect?(selected: ReadonlySet<string>): void
  /** The keys that the box in the head marks; without it, there is no such box. */
  listMarkable?(): string[]
  activeKey?: string
  onOpen?(row: Row): void
  onResize?(key: string, width: number): void
  /** Called when another row gets the focus by a key. */
  onFocusRow?(row: Row): void
  /** Begins to edit a value in its cell: by a double click, or by Enter or e. */
  onEdit?(row: Row, column: string): void
  editor?: CellEditor
  /** The rows that others have just changed. */
  glowing?: ReadonlySet<string>
}
