import { Button, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import classes from './empty-state.module.css'

/** `to` is a route, which opens without loading the page again: that would end the work in the tray. */
type Action = { label: string; to?: string; onClick?: () => void }

/** One sentence, and the button that begins. */
export type EmptyStateProps = { text: string; action?: Action; children?: ReactNode }

/** What stands where there is nothing yet: one sentence and one button. */
export function EmptyState({ text, action, children }: EmptyStateProps) {
  return (
    <div className={classes.empty}>
      <Text c="dimmed">{text}</Text>
      {action &&
        (action.to ? (
          <Button component={Link} to={action.to}>
            {action.label}
          </Button>
        ) : (
          <Button onClick={action.onClick}>{action.label}</Button>
        ))}
      {children}
    </div>
  )
}
