import { CloseButton, Title } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { type ReactNode, useEffect, useRef } from 'react'
import classes from './side-panel.module.css'

type SidePanelProps = { title: string; onClose: () => void; footer?: ReactNode; children: ReactNode }

/** Details beside a list; on a phone they fill the screen. Escape closes it, and the focus returns. */
export function SidePanel({ title, onClose, footer, children }: SidePanelProps) {
  const panel = useRef<HTMLElement>(null)
  useHotkeys([['Escape', onClose]], [])
  useEffect(() => {
    const before = document.activeElement
    panel.current?.focus()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <aside ref={panel} className={classes.panel} aria-label={title} tabIndex={-1}>
      <header className={classes.header}>
        <Title order={2} className={classes.title}>
          {title}
        </Title>
        <CloseButton aria-label="Close" onClick={onClose} />
      </header>
      <div className={classes.body}>{children}</div>
      {footer && <footer className={classes.footer}>{footer}</footer>}
    </aside>
  )
}
