import { Title } from '@mantine/core'
import type { ReactNode } from 'react'
import { useDocumentTitle } from '../branding/tenant-brand'
import { ApiButton, type ApiRequest } from './api-button'
import classes from './screen.module.css'

type ScreenProps = {
  title: string
  /** The request that the screen makes, which its API button shows as programs write it. */
  request?: ApiRequest
  actions?: ReactNode
  /** The other screens of the same thing. */
  tabs?: ReactNode
  toolbar?: ReactNode
  children: ReactNode
}

/** A screen: a line with its title and actions, and beneath it the thing itself. */
export function Screen({ title, request, actions, tabs, toolbar, children }: ScreenProps) {
  useDocumentTitle(title)
  return (
    <>
      <header className={classes.header}>
        <Title order={1} className={classes.title}>
          {title}
        </Title>
        <div className={classes.actions}>
          {request && <ApiButton request={request} />}
          {actions}
        </div>
      </header>
      {tabs && <div className={classes.tabs}>{tabs}</div>}
      {toolbar && <div className={classes.toolbar}>{toolbar}</div>}
      <div className={classes.body}>{children}</div>
    </>
  )
}
