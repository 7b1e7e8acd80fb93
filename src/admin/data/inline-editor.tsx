import { Popover } from '@mantine/core'
import { type FocusEvent, type KeyboardEvent, useLayoutEffect, useRef, useState } from 'react'
import type { Field } from '../api/schema'
import { ValueCell } from '../fields/value-cell'
import { ValueInput } from '../fields/value-input'
import classes from './inline-editor.module.css'

const MIN_WIDTH_PX = 200
const LONG_TYPES: Field['type'][] = ['text', 'object']

type InlineEditorProps = {
  field: Field
  value: unknown
  error?: string
  onChange: (value: unknown) => void
  onSave: (value: unknown) => void
  onCancel: () => void
}

/** Returns whether choosing a value says all, so that no Enter is needed. */
const isChoice = ({ type, enum: choices, multi }: Field) => !multi && (type === 'relation' || !!choices)

/** The input of a field over the cell of its value. Enter and leaving it save, Escape does not. */
export function InlineEditor({ field, value, error, onChange, onSave, onCancel }: InlineEditorProps) {
  const anchor = useRef<HTMLSpanElement>(null)
  const box = useRef<HTMLDivElement>(null)
  const isClosed = useRef(false)
  const [width, setWidth] = useState<number>()
  const isLong = LONG_TYPES.includes(field.type) || !!field.multi
  useLayoutEffect(() => setWidth(anchor.current?.closest('td')?.clientWidth), [])
  useLayoutEffect(() => {
    isClosed.current = false
  }, [error])
  const close = (finish: () => void) => {
    isClosed.current = true
    anchor.current?.closest('td')?.focus()
    finish()
  }
  const handleKey = (event: KeyboardEvent) => {
    const isListOpen = (event.target as HTMLElement).getAttribute('aria-expanded') === 'true'
    if (event.key === 'Escape' && !isListOpen) {
      event.stopPropagation()
      close(onCancel)
    }
    const isSaved = event.ctrlKey || event.metaKey || (!isLong && !isListOpen)
    if (event.key === 'Enter' && isSaved && !event.shiftKey) {
      event.preventDefault()
      event.stopPropagation()
      close(() => onSave(value))
    }
  }
  const handleBlur = (event: FocusEvent) => {
    if (isClosed.current || box.current?.contains(event.relatedTarget)) return
    isClosed.current = true
    onSave(value)
  }
  const change = (next: unknown) => {
    onChange(next)
    if (isChoice(field)) close(() => onSave(next))
  }
  return (
    <Popover
      opened={width !== undefined}
      position="bottom-start"
      offset={{ mainAxis: -30, crossAxis: -6 }}
      width={Math.max(MIN_WIDTH_PX, (width ?? 0) + 8)}
      shadow="md"
      returnFocus={false}
      closeOnClickOutside={false}
      closeOnEscape={false}
      withRoles={false}
    >
      <Popover.Target>
        <span ref={anchor} className={classes.anchor}>
          <ValueCell field={field} value={value} />
        </span>
      </Popover.Target>
      <Popover.Dropdown p={4} ref={box} onKeyDown={handleKey} onBlur={handleBlur}>
        <ValueInput
          field={field}
          value={value ?? undefined}
          onChange={change}
          error={error}
          aria-label={field.title || field.key}
          autoFocus
        />
      </Popover.Dropdown>
    </Popover>
  )
}
