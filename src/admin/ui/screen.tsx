import { Title } from '@mantine/core'
import { type ReactNode, useEffect } from 'react'
import classes from './screen.module.css'

type ScreenProps = { title: string; actions?: ReactNode; toolbar?: ReactNode; children: ReactNode }

/** A screen: a line with its title and actions, and beneath it the thing itself. */
export function Screen({ title, actions, toolbar, children }: ScreenProps) {
  useEffect(() => {
    document.title = `${title} · Atoll`
  }, [title])
  return (
    <>
      <header className={classes.header}>
        <Title order={1} className={classes.title}>
          {title}
        </Title>
        <div className={classes.actions}>{actions}</div>
      </header>
      {toolbar && <div className={classes.toolbar}>{toolbar}</div>}
      <div className={classes.body}>{children}</div>
    </>
  )
}
