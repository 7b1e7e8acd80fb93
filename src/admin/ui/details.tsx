import type { ReactNode } from 'react'
import classes from './details.module.css'

/** Names and values beneath each other. Values that are undefined are left out. */
export const Details = ({ items }: { items: readonly (readonly [label: string, value: ReactNode])[] }) => (
  <dl className={classes.details}>
    {items
      .filter(([, value]) => value !== undefined && value !== null && value !== '')
      .map(([label, value]) => (
        <div key={label} className={classes.item}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)
