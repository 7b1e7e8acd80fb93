import { ActionIcon, CloseButton, Title } from '@mantine/core'
import { IconChevronDown, IconChevronUp } from '@tabler/icons-react'
import { type KeyboardEvent as ReactKeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import classes from './side-panel.module.css'

type SidePanelProps = {
  title: string
  onClose: () => void
  /** Shows the row before or after this one; buttons and arrows ask for it. */
  onStep?: (by: 1 | -1) => void
  /** What stands beside the title. */
  actions?: ReactNode
  footer?: ReactNode
  children: ReactNode
}

/** Escape first closes what is open in the panel: a choice, a menu, a dialog. */
const hasOpenPart = (target: EventTarget | null) =>
  !!document.querySelector('[role=dialog], [role=menu]') ||
  (target instanceof HTMLElement && target.getAttribute('aria-expanded') === 'true')

const STEP_KEYS: Record<string, 1 | -1> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }
const INPUTS = 'input, textarea, select, [contenteditable], [role=tab], [role=menuitem]'

/** Details beside a list; on a phone they fill the screen. Escape closes it, and the focus returns. */
export function SidePanel({ title, onClose, onStep, actions, footer, children }: SidePanelProps) {
  const panel = useRef<HTMLElement>(null)
  const [before] = useState(() => document.activeElement)
  const latestOnClose = useRef(onClose)
  latestOnClose.current = onClose
  useEffect(() => {
    const closeByKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !hasOpenPart(event.target)) latestOnClose.current()
    }
    // Before the list of choices or the dialog closes, which are told from the panel by being open.
    addEventListener('keydown', closeByKey, { capture: true })
    return () => removeEventListener('keydown', closeByKey, { capture: true })
  }, [])
  useEffect(() => {
    // An input of the panel may have the focus already.
    if (!panel.current?.contains(document.activeElement)) panel.current?.focus()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [before])
  const handleKey = (event: ReactKeyboardEvent) => {
    const by = STEP_KEYS[event.key]
    const target = event.target as HTMLElement
    if (!by || !onStep || !panel.current?.contains(target) || target.closest(INPUTS)) return
    if (event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    onStep(by)
  }
  return (
    <aside ref={panel} className={classes.panel} aria-label={title} tabIndex={-1} onKeyDown={handleKey}>
      <header className={classes.header}>
        <Title order={2} className={classes.title}>
          {title}
        </Title>
        {onStep && (
          <>
            <ActionIcon variant="subtle" color="gray" aria-label="Previous row" onClick={() => onStep(-1)}>
              <IconChevronUp size={16} />
            </ActionIcon>
            <ActionIcon variant="subtle" color="gray" aria-label="Next row" onClick={() => onStep(1)}>
              <IconChevronDown size={16} />
            </ActionIcon>
          </>
        )}
        {actions}
        <CloseButton aria-label="Close" onClick={onClose} />
      </header>
      <div className={classes.body}>{children}</div>
      {footer && <footer className={classes.footer}>{footer}</footer>}
    </aside>
  )
}
