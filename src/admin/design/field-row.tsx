import { useSortable } from '@dnd-kit/sortable'
import { CSS } from '@dnd-kit/utilities'
import { ActionIcon, Text, UnstyledButton } from '@mantine/core'
import { IconChevronDown, IconGripVertical, IconTrash } from '@tabler/icons-react'
import { memo } from 'react'
import type { ProblemDetail } from '../api/problem'
import { fieldKinds } from '../fields'
import type { DraftField } from './design-draft'
import { FieldBasics } from './field-basics'
import { FieldOptions } from './field-options'
import classes from './fields.module.css'

type FieldRowProps = {
  field: DraftField
  number: number
  isOpen: boolean
  isInline?: boolean
  /** Whether it was added just now, and takes the focus. */
  isAdded: boolean
  /** All fields, which formulas name; only while it is open. */
  siblings?: DraftField[]
  flaws: ProblemDetail[]
  onChange: (id: string, part: Partial<DraftField>) => void
  onToggle: (id: string) => void
  onRemove: (field: DraftField) => void
  onAddNext?: () => void
}

/** Returns what is special about a field, in a few words. */
function listTraits({ required, unique, multi, enum: choices, target, formula, readRoles, writeRoles }: DraftField) {
  return [
    target && `→ ${target}`,
    required && 'required',
    unique && 'unique',
    multi && 'list',
    choices && `${choices.length} choices`,
    formula !== undefined && 'computed',
    readRoles?.length && 'hidden from some',
    writeRoles?.length && 'read only for some',
  ].filter((trait) => typeof trait === 'string')
}

/** One field in the list: its key, its type and what is special; its options, when it is open. */
export const FieldRow = memo(function FieldRow({ field, number, isOpen, isInline, flaws, ...rest }: FieldRowProps) {
  const { id, key, type } = field
  const { setNodeRef, setActivatorNodeRef, listeners, attributes, transform, transition, isDragging } = useSortable({
    id,
  })
  const name = key || `field ${number}`
  const { icon: Icon, label } = fieldKinds[type]
  const isExpanded = isOpen || (!isInline && flaws.length > 0)
  const change = (part: Partial<DraftField>) => rest.onChange(id, part)
  const basics = (
    <FieldBasics
      field={field}
      number={number}
      isInline={isInline}
      autoFocus={rest.isAdded}
      flaws={flaws}
      onChange={change}
      onEnter={rest.onAddNext}
    />
  )
  return (
    <li
      ref={setNodeRef}
      className={`${classes.row} ${isDragging ? classes.dragging : ''}`}
      style={{ transform: CSS.Translate.toString(transform), transition }}
    >
      <div className={classes.line}>
        <ActionIcon
          ref={setActivatorNodeRef}
          {...attributes}
          {...listeners}
          variant="subtle"
          color="gray"
          className={classes.handle}
          aria-label={`Move ${name}`}
        >
          <IconGripVertical size={16} />
        </ActionIcon>
        {isInline ? (
          basics
        ) : (
          <UnstyledButton className={classes.summary} onClick={() => rest.onToggle(id)} aria-expanded={isExpanded}>
            <Icon size={16} stroke={1.6} aria-hidden className={classes.icon} />
            <bdi className={classes.key}>{key || 'New field'}</bdi>
            <Text span size="sm" c="dimmed" className={classes.type}>
              {label}
            </Text>
            <Text span size="sm" c="dimmed" className={classes.traits} dir="auto">
              {listTraits(field).join(' · ')}
            </Text>
          </UnstyledButton>
        )}
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={`Options of ${name}`}
          aria-expanded={isExpanded}
          onClick={() => rest.onToggle(id)}
        >
          <IconChevronDown size={16} className={isExpanded ? classes.turned : undefined} />
        </ActionIcon>
        <ActionIcon variant="subtle" color="gray" aria-label={`Remove ${name}`} onClick={() => rest.onRemove(field)}>
          <IconTrash size={16} />
        </ActionIcon>
      </div>
      {isExpanded && (
        <div className={classes.options}>
          {!isInline && basics}
          <FieldOptions field={field} siblings={rest.siblings ?? []} flaws={flaws} onChange={change} />
        </div>
      )}
    </li>
  )
})
