import { useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react'
import classes from './data-table.module.css'
import { HeaderCell, MarkAllBox } from './data-table-header'
import { findKeyAction } from './data-table-keys'
import type { DataTableProps } from './data-table-props'
import { DataRow, LoadingRow, type RowActions } from './data-table-row'
import { isTextEntry } from './text-entry'

const ROW_HEIGHT_PX = 36
const ROWS_BEYOND_VIEW = 12
const MARK_WIDTH_PX = 44

export type { CellEditor, Column, DataTableProps } from './data-table-props'

/** A table of any length: only the rows in view exist. Arrows or j and k move, x marks, Enter opens, e edits. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, columns, count, rowAt, rowKey, selected, onSelect, activeKey, editor } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [focused, setFocused] = useState(0)
  const lastMarked = useRef<number>(undefined)
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT_PX,
    overscan: ROWS_BEYOND_VIEW,
    onChange: ({ range }) => range && props.onRangeChange?.(range.startIndex, range.endIndex),
  })
  const items = virtualizer.getVirtualItems()
  // Only a table with a width of its own keeps its columns from growing with their content.
  const width = columns.reduce((sum, column) => sum + column.width, onSelect ? MARK_WIDTH_PX : 0)
  const before = items[0]?.start ?? 0
  const after = virtualizer.getTotalSize() - (items.at(-1)?.end ?? 0)

  const mark = (index: number, isRange: boolean) => {
    const next = new Set(selected)
    const from = isRange ? (lastMarked.current ?? index) : index
    const row = rowAt(index)
    const isMarking = row !== undefined && (isRange || !next.has(rowKey(row)))
    for (let n = Math.min(from, index); n <= Math.max(from, index); n++) {
      const each = rowAt(n)
      if (each === undefined) continue
      if (isMarking) next.add(rowKey(each))
      else next.delete(rowKey(each))
    }
    lastMarked.current = index
    onSelect?.(next)
  }
  const focusRow = (index: number, column?: string) => {
    const next = Math.max(0, Math.min(count - 1, index))
    setFocused(next)
    virtualizer.scrollToIndex(next)
    const element = findRowOrCell(scroller.current, next, column)
    if (element) element.focus()
    else requestAnimationFrame(() => findRowOrCell(scroller.current, next, column)?.focus())
    const row = rowAt(next)
    if (row !== undefined) props.onFocusRow?.(row)
  }
  // Rows are rendered again only when what they show changes, so their actions have to stay the same.
  const latest = useRef({ ...props, mark, setFocused })
  latest.current = { ...props, mark, setFocused }
  const actions = useMemo<RowActions<Row>>(
    () => ({
      focus: (index) => latest.current.setFocused(index),
      open: (row) => latest.current.onOpen?.(row),
      mark: (index, isRange) => latest.current.mark(index, isRange),
      edit: (row, column) => latest.current.onEdit?.(row, column),
    }),
    [],
  )
  useEffect(() => {
    // In another order or with other filters, the list begins anew.
    virtualizer.scrollToOffset(0)
    setFocused(0)
    lastMarked.current = undefined
  }, [props.sort, props.listKey])
  useEffect(() => {
    // The panel leads to the rows around the one that has the focus.
    const index = [focused - 1, focused + 1].find((n) => {
      const row = n >= 0 && n < count ? rowAt(n) : undefined
      return row !== undefined && rowKey(row) === activeKey
    })
    if (index === undefined) return
    setFocused(index)
    virtualizer.scrollToIndex(index)
  }, [activeKey])
  const handleKey = (event: KeyboardEvent) => {
    // Events of a portal bubble here, although it is not a part of the table.
    if (!event.currentTarget.contains(event.target as Node)) return
    if (isTextEntry(event.target) || event.ctrlKey || event.metaKey || event.altKey) return
    const context = { columns, focused, count, row: rowAt(focused), props, focusRow, mark }
    const action = findKeyAction(event, context)
    if (!action) return
    event.preventDefault()
    action()
  }

  return (
    <section ref={scroller} className={classes.scroller} aria-label={label}>
      <table className={classes.table} style={{ width }} aria-rowcount={count + 1} onKeyDown={handleKey}>
        <colgroup>
          {onSelect && <col style={{ width: MARK_WIDTH_PX }} />}
          {columns.map(({ key, width }) => (
            <col key={key} style={{ width }} />
          ))}
        </colgroup>
        <thead className={classes.head}>
          <tr>
            {onSelect && <MarkAllBox {...props} />}
            {columns.map((column) => (
              <HeaderCell key={column.key} column={column} {...props} />
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
            return (
              <DataRow
                key={key}
                name={key}
                row={row}
                index={index}
                columns={columns}
                actions={actions}
                isFocused={index === focused}
                isActive={key === activeKey}
                isMarked={onSelect && !!selected?.has(key)}
                isGlowing={!!props.glowing?.has(key)}
                editor={editor?.rowKey === key ? editor : undefined}
                isOpenedLate={!!props.onEdit && activeKey === undefined}
              />
            )
          })}
          {after > 0 && <tr style={{ height: after }} aria-hidden />}
        </tbody>
      </table>
    </section>
  )
}

/** Returns the row with an index, or its cell in a column. */
const findRowOrCell = (scroller: HTMLElement | null, index: number, column?: string) =>
  scroller?.querySelector<HTMLElement>(
    `tr[data-index="${index}"]${column === undefined ? '' : ` td[data-column="${CSS.escape(column)}"]`}`,
  )
