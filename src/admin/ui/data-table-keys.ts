import type { KeyboardEvent } from 'react'
import type { Column, DataTableProps } from './data-table-props'

const PAGE_ROWS = 15
/** By how much a key changes the width of a column. */
export const RESIZE_STEP_PX = 16
const MIN_COLUMN_WIDTH_PX = 60

/** Returns a width that a column may have. */
export const clampWidth = (width: number) => Math.max(MIN_COLUMN_WIDTH_PX, Math.round(width))

type KeyContext<Row> = {
  columns: Column<Row>[]
  focused: number
  count: number
  row: Row | undefined
  props: DataTableProps<Row>
  focusRow(index: number, column?: string): void
  mark(index: number, isRange: boolean): void
}

type KeyActions = Record<string, (() => void) | false | undefined>

/** Returns what a key does in the table, or undefined. */
export function findKeyAction<Row>(event: KeyboardEvent, context: KeyContext<Row>): (() => void) | undefined {
  const column = (event.target as HTMLElement).closest<HTMLElement>('td[data-column]')?.dataset.column
  const actions = event.shiftKey ? listShiftActions(context, column) : listActions(context, column, isOnControl(event))
  return actions[event.key] || undefined
}

/** Enter on a link or button does what that is for. */
const isOnControl = ({ target }: KeyboardEvent) => !!(target as HTMLElement).closest('a, button')

function listActions<Row>(context: KeyContext<Row>, column: string | undefined, isControl: boolean): KeyActions {
  const { columns, focused, count, row, props, focusRow, mark } = context
  const columnIndex = columns.findIndex(({ key }) => key === column)
  const moveTo = (index: number) => () => focusRow(index, column)
  const moveSideways = (by: number) => () => {
    const next = columns[Math.min(columns.length - 1, columnIndex + by)]
    focusRow(focused, next?.key)
  }
  const edit = () => {
    const edited = columnIndex < 0 ? columns.find(({ isEditable }) => isEditable) : columns[columnIndex]
    if (row !== undefined && edited?.isEditable) props.onEdit?.(row, edited.key)
  }
  const open = () => row !== undefined && props.onOpen?.(row)
  return {
    ArrowDown: moveTo(focused + 1),
    j: moveTo(focused + 1),
    ArrowUp: moveTo(focused - 1),
    k: moveTo(focused - 1),
    ArrowRight: moveSideways(1),
    ArrowLeft: columnIndex >= 0 && moveSideways(-1),
    Home: moveTo(0),
    End: moveTo(count - 1),
    PageDown: moveTo(focused + PAGE_ROWS),
    PageUp: moveTo(focused - PAGE_ROWS),
    Enter: !isControl && (columns[columnIndex]?.isEditable ? edit : open),
    e: props.onEdit && edit,
    x: props.onSelect && (() => mark(focused, false)),
  }
}

function listShiftActions<Row>(context: KeyContext<Row>, columnKey: string | undefined): KeyActions {
  const { columns, focused, count, props, focusRow, mark } = context
  const column = columns.find(({ key }) => key === columnKey)
  const resize = (by: number) => () => {
    if (column) props.onResize?.(column.key, clampWidth(column.width + by))
  }
  const extend = (by: number) => () => {
    const next = Math.max(0, Math.min(count - 1, focused + by))
    mark(focused, true)
    mark(next, true)
    focusRow(next, columnKey)
  }
  return {
    ArrowLeft: resize(-RESIZE_STEP_PX),
    ArrowRight: resize(RESIZE_STEP_PX),
    ...(props.onSelect && {
      ArrowDown: extend(1),
      ArrowUp: extend(-1),
      J: extend(1),
      K: extend(-1),
      X: () => mark(focused, true),
    }),
  }
}
