import { CloseButton, Title } from '@mantine/core'
import { type ReactNode, useEffect, useRef } from 'react'
import classes from './side-panel.module.css'

type SidePanelProps = { title: string; onClose: () => void; footer?: ReactNode; children: ReactNode }

/** Whether Escape closes something else: a list of choices, a menu or a dialog. */
const isInOpenOverlay = (target: EventTarget | null) =>
  target instanceof Element &&
  !!target.closest('[aria-haspopup][aria-expanded="true"], [aria-modal="true"], [role="menu"]')

/** Details beside a list; on a phone they fill the screen. Escape closes it, and the focus returns. */
export function SidePanel({ title, onClose, footer, children }: SidePanelProps) {
  const panel = useRef<HTMLElement>(null)
  const latestOnClose = useRef(onClose)
  latestOnClose.current = onClose
  useEffect(() => {
    const closeByKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !isInOpenOverlay(event.target)) latestOnClose.current()
    }
    // Before the list of choices or the dialog closes, which are told from the panel by being open.
    addEventListener('keydown', closeByKey, { capture: true })
    return () => removeEventListener('keydown', closeByKey, { capture: true })
  }, [])
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
