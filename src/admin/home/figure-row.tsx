import { Skeleton } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import classes from './figure-row.module.css'
import { Sparkline } from './sparkline'

/** A route of the page with its filters. */
export type LinkTarget = { to: string; search?: Record<string, string> }

type FigureRowProps = LinkTarget & {
  /** The number as it is shown; without it, the row is still loading. */
  value?: string
  label: string
  /** What else is worth knowing, such as how many were added lately. */
  note?: string
  /** The value of each day. */
  trend?: readonly number[]
  isBad?: boolean
}

/** One number with its words, which lead to what is counted. */
export const FigureRow = ({ to, search, value, label, note, trend, isBad }: FigureRowProps) => (
  <Link to={to} search={(search ?? {}) as never} className={classes.row}>
    <span className={`${classes.value} ${isBad ? classes.bad : ''}`}>
      {value ?? <Skeleton height={12} width={32} ml="auto" animate={false} />}
    </span>{' '}
    <span className={classes.label} title={label}>
      {label}
    </span>{' '}
    <span className={classes.note}>{note}</span>
    <span className={classes.trend}>{trend && <Sparkline values={trend} />}</span>
  </Link>
)

/** Some numbers beneath a heading. */
export const FigureGroup = ({ title, children }: { title: string; children: ReactNode }) => (
  <section className={classes.group} aria-label={title}>
    <h2 className={classes.heading}>{title}</h2>
    {children}
  </section>
)

type EmptyHintProps = LinkTarget & { text: string; action: string }

/** What stands where there is nothing to count yet, with a link to what changes that. */
export const EmptyHint = ({ text, action, to, search }: EmptyHintProps) => (
  <p className={classes.hint}>
    {text}{' '}
    <Link to={to} search={(search ?? {}) as never} className={classes.link}>
      {action}
    </Link>
  </p>
)
