import type { KeyboardEvent } from 'react'
import type { Column, DataTableProps } from './data-table-props'

const PAGE_ROWS = 15
const RESIZE_STEP_PX = 16
const MIN_COLUMN_WIDTH_PX = 60

/** Returns a width that a column may have. */
export const clampWidth = (width: number) => Math.max(MIN_COLUMN_WIDTH_PX, Math.round(width))

type Place<Row> = {
  columns: Column<Row>[]
  focused: number
  count: number
  row: Row | undefined
  props: DataTableProps<Row>
  focusRow(index: number, column?: string): void
  mark(index: number, isRange: boolean): void
}

/** Returns what a key does in the table, or undefined. */
export function findKeyAction<Row>(event: KeyboardEvent, place: Place<Row>): (() => void) | undefined {
  const { columns, focused, count, row, props, focusRow, mark } = place
  const column = (event.target as HTMLElement).closest<HTMLElement>('td[data-column]')?.dataset.column
  const at = columns.findIndex(({ key }) => key === column)
  const moveTo = (index: number) => () => focusRow(index, column)
  const moveSideways = (by: number) => () => {
    const next = columns[Math.min(columns.length - 1, at + by)]
    focusRow(focused, next?.key)
  }
  const edit = () => {
    const chosen = at < 0 ? columns.find(({ isEditable }) => isEditable) : columns[at]
    if (row !== undefined && chosen?.isEditable) props.onEdit?.(row, chosen.key)
  }
  const resize = (by: number) => () => {
    const here = columns[at]
    if (here) props.onResize?.(here.key, clampWidth(here.width + by))
  }
  const extend = (by: number) => () => {
    const next = Math.max(0, Math.min(count - 1, focused + by))
    mark(focused, true)
    mark(next, true)
    focusRow(next, column)
  }
  if (event.shiftKey) {
    const shifted: Record<string, () => void> = {
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
    return shifted[event.key]
  }
  const actions: Record<string, (() => void) | false | undefined> = {
    ArrowDown: moveTo(focused + 1),
    j: moveTo(focused + 1),
    ArrowUp: moveTo(focused - 1),
    k: moveTo(focused - 1),
    ArrowRight: moveSideways(1),
    ArrowLeft: at >= 0 && moveSideways(-1),
    Home: moveTo(0),
    End: moveTo(count - 1),
    PageDown: moveTo(focused + PAGE_ROWS),
    PageUp: moveTo(focused - PAGE_ROWS),
    Enter: isOnControl(event)
      ? undefined
      : at >= 0 && columns[at]?.isEditable
        ? edit
        : () => row && props.onOpen?.(row),
    e: props.onEdit && edit,
    x: props.onSelect && (() => mark(focused, false)),
  }
  return actions[event.key] || undefined
}

/** Enter on a link or button does what that is for. */
const isOnControl = ({ target }: KeyboardEvent) => !!(target as HTMLElement).closest('a, button')
