import { Checkbox, Select, TextInput } from '@mantine/core'
import { type KeyboardEvent, useState } from 'react'
import type { ProblemDetail } from '../api/problem'
import { BlueprintSelect } from '../data/blueprint-select'
import { fieldKinds } from '../fields'
import type { FieldType } from '../fields/field-kind'
import type { DraftField } from './design-draft'
import { findKeyFlaw } from './field-traits'
import classes from './fields.module.css'

const TYPE_OPTIONS = Object.entries(fieldKinds).map(([value, { label }]) => ({ value, label }))

type FieldBasicsProps = {
  field: DraftField
  number: number
  /** Whether it stands in one line, where names are for assistive technology only. */
  isInline?: boolean
  autoFocus: boolean
  flaws: ProblemDetail[]
  onChange: (part: Partial<DraftField>) => void
  onEnter?: () => void
}

/** Returns the options that another type of a field takes along. */
const toType = (type: FieldType): Partial<DraftField> => ({
  type,
  ...{ min: undefined, max: undefined, pattern: undefined, enum: undefined, default: undefined, schema: undefined },
  ...(type !== 'relation' && { target: undefined, onDelete: undefined }),
  ...(type === 'object' && { unique: undefined }),
  ...(type === 'relation' && { indexed: undefined }),
})

/** What every field needs: its key, its type, its target when it is a relation, and whether it is required. */
export function FieldBasics({ field, number, isInline, autoFocus, flaws, onChange, onEnter }: FieldBasicsProps) {
  const { key, type, target, required } = field
  const [wasLeft, setWasLeft] = useState(false)
  const errorAt = (part: string) => flaws.find(({ path }) => path.endsWith(`/${part}`))?.message
  const nameOf = (label: string) => (isInline ? { 'aria-label': `${label} of field ${number}` } : { label })
  const handleKey = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.ctrlKey || event.metaKey || !onEnter) return
    event.preventDefault()
    onEnter()
  }
  return (
    <div className={isInline ? classes.inline : classes.grid}>
      <TextInput
        {...nameOf('Name')}
        {...(!isInline && { description: 'As programs write it: letters, digits and _.' })}
        className={classes.grow}
        placeholder="name"
        autoFocus={autoFocus}
        value={key}
        error={errorAt('key') ?? (wasLeft && key ? findKeyFlaw(key) : undefined)}
        onBlur={() => setWasLeft(true)}
        onKeyDown={handleKey}
        onChange={(event) => onChange({ key: event.currentTarget.value })}
      />
      <Select
        {...nameOf('Type')}
        {...(!isInline && { description: 'What its values are.' })}
        w={isInline ? 160 : undefined}
        data={TYPE_OPTIONS}
        value={type}
        error={errorAt('type')}
        allowDeselect={false}
        maxDropdownHeight={320}
        onChange={(next) => next && next !== type && onChange(toType(next as FieldType))}
      />
      {type === 'relation' && (
        <BlueprintSelect
          aria-label={isInline ? `Target of field ${number}` : 'Target'}
          {...(!isInline && { label: 'Target', description: 'The blueprint whose entities it names.' })}
          value={target}
          error={errorAt('target')}
          onChange={(next) => onChange({ target: next })}
        />
      )}
      {isInline && (
        <Checkbox
          mt={8}
          label="Required"
          aria-label={`Field ${number} is required`}
          checked={!!required}
          onChange={(event) => onChange({ required: event.currentTarget.checked || undefined })}
        />
      )}
    </div>
  )
}
