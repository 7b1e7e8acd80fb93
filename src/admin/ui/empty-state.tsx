import { Button, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import classes from './empty-state.module.css'

type Action = { label: string; href?: string; onClick?: () => void }

/** One sentence, and the button that begins. A link is an address below `/admin`. */
export type EmptyStateProps = { text: string; action?: Action; children?: ReactNode }

/** What stands where there is nothing yet: one sentence and one button. */
export function EmptyState({ text, action, children }: EmptyStateProps) {
  return (
    <div className={classes.empty}>
      <Text c="dimmed">{text}</Text>
      {action &&
        (action.href ? (
          <Button component="a" href={action.href}>
            {action.label}
          </Button>
        ) : (
          <Button onClick={action.onClick}>{action.label}</Button>
        ))}
      {children}
    </div>
  )
}
