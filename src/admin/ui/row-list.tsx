import { Text } from '@mantine/core'
import type { ReactNode } from 'react'
import classes from './row-list.module.css'

type RowListProps<Row> = {
  /** What the list holds, for assistive technology. */
  label: string
  rows: readonly Row[] | undefined
  rowKey(row: Row): string
  /** What a row is called, and what is known about it. */
  render(row: Row): { title: ReactNode; text?: ReactNode; actions?: ReactNode }
  /** What stands there while there are no rows. */
  empty: string
}

/** A short list inside of a panel: a line with a title, what is known beneath it, and actions at the right. */
export function RowList<Row>({ label, rows, rowKey, render, empty }: RowListProps<Row>) {
  if (!rows) return null
  if (!rows.length)
    return (
      <Text size="sm" c="dimmed">
        {empty}
      </Text>
    )
  return (
    <ul className={classes.list} aria-label={label}>
      {rows.map((row) => {
        const { title, text, actions } = render(row)
        return (
          <li key={rowKey(row)} className={classes.row}>
            <div className={classes.words}>
              <div className={classes.title}>{title}</div>
              {text && <div className={classes.text}>{text}</div>}
            </div>
            {actions}
          </li>
        )
      })}
    </ul>
  )
}
