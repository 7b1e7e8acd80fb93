import { UnstyledButton } from '@mantine/core'
import { IconArrowDown, IconArrowUp } from '@tabler/icons-react'
import type { KeyboardEvent, MouseEvent, PointerEvent as ReactPointerEvent } from 'react'
import classes from './data-table.module.css'
import { clampWidth, RESIZE_STEP_PX } from './data-table-keys'
import type { Column, DataTableProps } from './data-table-props'

const CELL_PADDING_PX = 18
const MAX_FITTED_WIDTH_PX = 600

type MarkAllProps = Pick<DataTableProps<never>, 'listMarkable' | 'selected' | 'onSelect'>

/** The box that marks all rows of the page, or takes their marks away. */
export function MarkAllBox({ listMarkable, selected, onSelect }: MarkAllProps) {
  if (!listMarkable) return <th aria-label="Marked" />
  const isAnyMarked = !!selected?.size
  return (
    <th>
      <input
        type="checkbox"
        className={classes.box}
        aria-label="Mark all rows of this page"
        checked={isAnyMarked}
        onChange={() => onSelect?.(new Set(isAnyMarked ? [] : listMarkable()))}
      />
    </th>
  )
}

const listSorts = (sort = '') => sort.split(',').filter(Boolean)

/** Returns the order after a click on a column, which replaces the order or adds to it. */
function toNextSort(sort: string | undefined, key: string, isAdded: boolean): string {
  const sorts = listSorts(sort)
  const next = sorts.includes(key) ? `-${key}` : key
  if (!isAdded) return next
  const sortIndex = sorts.findIndex((each) => each === key || each === `-${key}`)
  if (sortIndex < 0) return [...sorts, key].join(',')
  // A third click takes the column out of the order.
  return sorts.flatMap((each, n) => (n !== sortIndex ? [each] : each === key ? [`-${key}`] : [])).join(',')
}

type HeaderCellProps<Row> = Pick<DataTableProps<Row>, 'sort' | 'onSort' | 'onResize' | 'hasSeveralSorts'> & {
  column: Column<Row>
}

/** The head of a column: a click sorts, its right edge changes the width. */
export function HeaderCell<Row>({ column, sort, onSort, onResize, hasSeveralSorts }: HeaderCellProps<Row>) {
  const { key, label, align, isSortable } = column
  const sorts = listSorts(sort)
  const sortIndex = sorts.findIndex((each) => each === key || each === `-${key}`)
  const direction = sortIndex < 0 ? undefined : sorts[sortIndex] === key ? 'ascending' : 'descending'
  const Arrow = direction === 'ascending' ? IconArrowUp : IconArrowDown
  const resizeByKey = (event: KeyboardEvent) => {
    const step = event.shiftKey && { ArrowLeft: -RESIZE_STEP_PX, ArrowRight: RESIZE_STEP_PX }[event.key]
    if (!step) return
    event.stopPropagation()
    onResize?.(key, clampWidth(column.width + step))
  }
  return (
    <th
      scope="col"
      aria-sort={sortIndex === 0 ? direction : undefined}
      className={align === 'right' ? classes.right : undefined}
    >
      {isSortable && onSort ? (
        <UnstyledButton
          className={classes.sort}
          title={label}
          onKeyDown={resizeByKey}
          onClick={(event) => onSort(toNextSort(sort, key, !!hasSeveralSorts && event.shiftKey))}
        >
          <span className={classes.label}>{label}</span>
          {direction && <Arrow size={14} aria-hidden className={classes.arrow} />}
          {direction && sorts.length > 1 && <sub aria-hidden>{sortIndex + 1}</sub>}
        </UnstyledButton>
      ) : (
        <span className={classes.label} title={label}>
          {label}
        </span>
      )}
      {onResize && <ResizeHandle column={column} onResize={onResize} />}
    </th>
  )
}

type ResizeHandleProps<Row> = { column: Column<Row>; onResize(key: string, width: number): void }

function ResizeHandle<Row>({ column: { key, width }, onResize }: ResizeHandleProps<Row>) {
  const startResize = (event: ReactPointerEvent) => {
    event.preventDefault()
    const from = event.clientX
    const move = ({ clientX }: PointerEvent) => onResize(key, clampWidth(width + clientX - from))
    const stop = () => {
      removeEventListener('pointermove', move)
      removeEventListener('pointerup', stop)
      removeEventListener('pointercancel', stop)
    }
    addEventListener('pointermove', move)
    addEventListener('pointerup', stop)
    addEventListener('pointercancel', stop)
  }
  const fitToContent = (event: MouseEvent) => {
    const cells = event.currentTarget.closest('table')?.querySelectorAll(`[data-column="${CSS.escape(key)}"]`) ?? []
    const widths = [...cells].map((cell) => {
      const range = document.createRange()
      range.selectNodeContents(cell)
      return range.getBoundingClientRect().width
    })
    if (widths.length) onResize(key, clampWidth(Math.min(MAX_FITTED_WIDTH_PX, Math.max(...widths) + CELL_PADDING_PX)))
  }
  return <span className={classes.handle} onPointerDown={startResize} onDoubleClick={fitToContent} aria-hidden />
}
