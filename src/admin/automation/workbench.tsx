import { Tabs } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import classes from './workbench.module.css'

export type WorkbenchTab = { key: string; label: string; render(): ReactNode }

type WorkbenchProps = {
  tabs: readonly WorkbenchTab[]
  /** Whether the thing itself is a form, which is easier to read when it is narrow. */
  isForm?: boolean
  children: ReactNode
}

/** A thing at the left, and at the right what can be done with it. The address holds which tab is open. */
export function Workbench({ tabs, isForm, children }: WorkbenchProps) {
  const search = useSearch({ strict: false }) as Record<string, string>
  const navigate = useNavigate()
  const current = tabs.find(({ key }) => key === search.tab) ?? tabs[0]!
  const open = (tab: string | null) => navigate({ to: '.', search: { ...search, tab } as never, replace: true })
  return (
    <div className={`${classes.workbench} ${isForm ? classes.withForm : ''}`}>
      <div className={classes.main}>{isForm ? <div className={classes.form}>{children}</div> : children}</div>
      <Tabs className={classes.aside} value={current.key} onChange={open} keepMounted={false}>
        <Tabs.List className={classes.tabs}>
          {tabs.map(({ key, label }) => (
            <Tabs.Tab key={key} value={key}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {tabs.map(({ key, render }) => (
          <Tabs.Panel key={key} value={key} className={classes.panel}>
            {render()}
          </Tabs.Panel>
        ))}
      </Tabs>
    </div>
  )
}
