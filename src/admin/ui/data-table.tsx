import { Checkbox, Skeleton, UnstyledButton } from '@mantine/core'
import { IconArrowDown, IconArrowUp } from '@tabler/icons-react'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, type ReactNode, useRef, useState } from 'react'
import classes from './data-table.module.css'

const ROW_HEIGHT_PX = 36
const ROWS_BEYOND_VIEW = 12
const MIN_COLUMN_WIDTH_PX = 60

export type Column<Row> = {
  key: string
  label: string
  width: number
  align?: 'right'
  isSortable?: boolean
  render(row: Row): ReactNode
}

export type DataTableProps<Row> = {
  /** What the table holds, for assistive technology. */
  label: string
  columns: Column<Row>[]
  count: number
  /** Returns the row at an index, or undefined while it is loading. */
  rowAt(index: number): Row | undefined
  rowKey(row: Row): string
  /** Called with the first and the last row in view. */
  onRangeChange?(first: number, last: number): void
  /** The column that the rows are sorted by, with `-` before it for descending. */
  sort?: string
  onSort?(sort: string): void
  selected?: ReadonlySet<string>
  onSelect?(selected: ReadonlySet<string>): void
  activeKey?: string
  onOpen?(row: Row): void
  onResize?(key: string, width: number): void
}

/** A table of any length: only the rows in view exist. Arrows or j and k move, x marks, Enter opens. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, columns, count, rowAt, rowKey, sort = '', onSort, selected, onSelect, activeKey, onOpen } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [focused, setFocused] = useState(0)
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT_PX,
    overscan: ROWS_BEYOND_VIEW,
    onChange: ({ range }) => range && props.onRangeChange?.(range.startIndex, range.endIndex),
  })
  const items = virtualizer.getVirtualItems()
  const before = items[0]?.start ?? 0
  const after = virtualizer.getTotalSize() - (items.at(-1)?.end ?? 0)

  const toggle = (key: string) => {
    const next = new Set(selected)
    if (!next.delete(key)) next.add(key)
    onSelect?.(next)
  }
  const focusRow = (index: number) => {
    const next = Math.max(0, Math.min(count - 1, index))
    setFocused(next)
    virtualizer.scrollToIndex(next)
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`tr[data-index="${next}"]`)?.focus())
  }
  const handleKey = (event: KeyboardEvent) => {
    if (event.target instanceof HTMLElement && event.target.closest('input:not([type=checkbox]), textarea')) return
    const row = rowAt(focused)
    const actions: Record<string, () => void> = {
      ArrowDown: () => focusRow(focused + 1),
      j: () => focusRow(focused + 1),
      ArrowUp: () => focusRow(focused - 1),
      k: () => focusRow(focused - 1),
      Home: () => focusRow(0),
      End: () => focusRow(count - 1),
      PageDown: () => focusRow(focused + 15),
      PageUp: () => focusRow(focused - 15),
      Enter: () => row && onOpen?.(row),
      x: () => row && onSelect && toggle(rowKey(row)),
    }
    const action = actions[event.key]
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    action()
  }

  return (
    <section ref={scroller} className={classes.scroller} aria-label={label}>
      <table className={classes.table} aria-rowcount={count + 1} onKeyDown={handleKey}>
        <colgroup>
          {onSelect && <col style={{ width: 36 }} />}
          {columns.map(({ key, width }) => (
            <col key={key} style={{ width }} />
          ))}
        </colgroup>
        <thead className={classes.head}>
          <tr>
            {onSelect && <th aria-label="Marked" />}
            {columns.map((column) => (
              <HeaderCell key={column.key} column={column} sort={sort} onSort={onSort} onResize={props.onResize} />
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <tr style={{ height: before }} aria-hidden />}
          {items.map(({ index }) => {
            const row = rowAt(index)
            if (row === undefined)
              return <LoadingRow key={`loading-${index}`} columns={columns.length + (onSelect ? 1 : 0)} />
            const key = rowKey(row)
            const isMarked = selected?.has(key)
            return (
              <tr
                key={key}
                data-index={index}
                aria-rowindex={index + 2}
                aria-selected={isMarked}
                className={`${classes.row} ${key === activeKey ? classes.active : ''} ${isMarked ? classes.marked : ''}`}
                tabIndex={index === focused ? 0 : -1}
                onFocus={() => setFocused(index)}
                onClick={() => onOpen?.(row)}
              >
                {onSelect && (
                  <td onClick={(event) => event.stopPropagation()} onKeyDown={undefined}>
                    <Checkbox
                      size="xs"
                      tabIndex={-1}
                      checked={!!isMarked}
                      onChange={() => toggle(key)}
                      aria-label={`Mark ${key}`}
                    />
                  </td>
                )}
                {columns.map(({ key: column, align, render }) => (
                  <td key={column} className={align === 'right' ? classes.right : undefined}>
                    {render(row)}
                  </td>
                ))}
              </tr>
            )
          })}
          {after > 0 && <tr style={{ height: after }} aria-hidden />}
        </tbody>
      </table>
    </section>
  )
}

type HeaderCellProps<Row> = Pick<DataTableProps<Row>, 'sort' | 'onSort' | 'onResize'> & { column: Column<Row> }

function HeaderCell<Row>({ column, sort, onSort, onResize }: HeaderCellProps<Row>) {
  const { key, label, align, isSortable } = column
  const direction = sort === key ? 'ascending' : sort === `-${key}` ? 'descending' : undefined
  const Arrow = direction === 'ascending' ? IconArrowUp : IconArrowDown
  const startResize = (event: React.PointerEvent) => {
    event.preventDefault()
    const from = event.clientX
    const move = ({ clientX }: PointerEvent) =>
      onResize?.(key, Math.max(MIN_COLUMN_WIDTH_PX, Math.round(column.width + clientX - from)))
    const stop = () => {
      removeEventListener('pointermove', move)
      removeEventListener('pointerup', stop)
    }
    addEventListener('pointermove', move)
    addEventListener('pointerup', stop)
  }
  return (
    <th scope="col" aria-sort={direction} className={align === 'right' ? classes.right : undefined}>
      {isSortable && onSort ? (
        <UnstyledButton className={classes.sort} onClick={() => onSort(direction === 'ascending' ? `-${key}` : key)}>
          {label}
          {direction && <Arrow size={14} aria-hidden />}
        </UnstyledButton>
      ) : (
        label
      )}
      {onResize && <span className={classes.handle} onPointerDown={startResize} aria-hidden />}
    </th>
  )
}

const LoadingRow = ({ columns }: { columns: number }) => (
  <tr className={classes.row} aria-hidden>
    <td colSpan={columns}>
      <Skeleton height={10} width="60%" animate={false} />
    </td>
  </tr>
)
