import { type MouseEvent, memo, useEffect, useRef } from 'react'
import classes from './data-table.module.css'
import type { CellEditor, Column } from './data-table-props'
import { isTextEntry } from './text-entry'

/** How long a first click waits for a second one, where a double click edits. */
const DOUBLE_CLICK_MS = 220

export type RowActions<Row> = {
  focus(index: number): void
  open(row: Row): void
  mark(index: number, isRange: boolean): void
  edit(row: Row, column: string): void
}

type DataRowProps<Row> = {
  name: string
  row: Row
  index: number
  columns: Column<Row>[]
  actions: RowActions<Row>
  isFocused: boolean
  isActive: boolean
  /** Undefined where rows cannot be marked. */
  isMarked?: boolean
  isGlowing: boolean
  editor?: CellEditor
  /** Whether opening waits for a second click, because opening would move what is clicked. */
  isOpenedLate: boolean
}

function Row<Row>({ name, row, index, columns, actions, ...state }: DataRowProps<Row>) {
  const { isMarked, editor, isOpenedLate } = state
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  // Who left the screen meanwhile does not want to come back to it.
  useEffect(() => () => clearTimeout(timer.current), [])
  const open = (event: MouseEvent) => {
    clearTimeout(timer.current)
    const column = columns.find(({ key }) => key === findColumn(event))
    if (!column || isTextEntry(event.target) || event.detail > 1) return
    if (event.shiftKey && isMarked !== undefined) return actions.mark(index, true)
    if (!isOpenedLate || !column.isEditable) return actions.open(row)
    timer.current = setTimeout(() => actions.open(row), DOUBLE_CLICK_MS)
  }
  const edit = (event: MouseEvent) => {
    clearTimeout(timer.current)
    const column = columns.find(({ key }) => key === findColumn(event))
    if (column?.isEditable && !isTextEntry(event.target)) actions.edit(row, column.key)
  }
  return (
    <tr
      data-index={index}
      aria-rowindex={index + 2}
      aria-selected={isMarked}
      className={toClassName(state)}
      tabIndex={state.isFocused ? 0 : -1}
      onFocus={() => actions.focus(index)}
      onClick={open}
      onDoubleClick={edit}
      onMouseDown={(event) => event.shiftKey && event.preventDefault()}
    >
      {isMarked !== undefined && (
        <td>
          <input
            type="checkbox"
            className={classes.box}
            tabIndex={-1}
            checked={isMarked}
            onChange={() => {}}
            onClick={(event) => actions.mark(index, event.shiftKey)}
            aria-label={`Mark ${name}`}
          />
        </td>
      )}
      {columns.map(({ key, align, render }) => (
        <td
          key={key}
          data-column={key}
          tabIndex={-1}
          dir="auto"
          className={align === 'right' ? classes.right : undefined}
        >
          {editor?.column === key ? editor.content : render(row)}
        </td>
      ))}
    </tr>
  )
}

/** One row of a `DataTable`. */
export const DataRow = memo(Row) as typeof Row

const findColumn = ({ target }: MouseEvent) =>
  (target as HTMLElement).closest<HTMLElement>('td[data-column]')?.dataset.column

const toClassName = ({
  isActive,
  isMarked,
  isGlowing,
}: {
  isActive: boolean
  isMarked?: boolean
  isGlowing: boolean
}) =>
  [classes.row, isActive && classes.active, isMarked && classes.marked, isGlowing && classes.glowing]
    .filter(Boolean)
    .join(' ')

/** Stands for a row until it is loaded. */
export const LoadingRow = ({ columns }: { columns: number }) => (
  <tr className={classes.row} aria-hidden>
    <td colSpan={columns}>
      <div className={classes.skeleton} />
    </td>
  </tr>
)
