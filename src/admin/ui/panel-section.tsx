import { Title } from '@mantine/core'
import type { ReactNode } from 'react'
import classes from './panel-section.module.css'

type PanelSectionProps = {
  title: string
  /** The level of its heading: 2 on a screen, 3 in a panel. */
  order?: 2 | 3
  action?: ReactNode
  children?: ReactNode
}

/** A part of a panel or of a screen: a heading, what can be done at its right, and the thing itself. */
export const PanelSection = ({ title, order = 3, action, children }: PanelSectionProps) => (
  <section className={classes.section} aria-label={title}>
    <header className={classes.header}>
      <Title order={order} className={classes.title}>
        {title}
      </Title>
      {action}
    </header>
    {children}
  </section>
)
