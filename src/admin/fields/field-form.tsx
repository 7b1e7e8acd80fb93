import { Anchor, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type ComponentType, createContext, type FormEvent, type KeyboardEvent, useContext, useState } from 'react'
import { keepDraft, readDraft, removeDraft } from '../api/drafts'
import { findFieldError } from '../api/problem'
import type { Field } from '../api/schema'
import { ProblemMessage } from '../ui/problem-message'
import type { InputProps } from './field-kind'
import { fieldKinds } from './index'
import { TextListInput } from './text-input'

/** The values of a form by the keys of its fields. */
export type FormValues = Record<string, unknown>

/** A field of a form: as blueprints describe fields, and what only forms need. */
export type FormField = Field & {
  /** An input of its own, instead of the one of its type. */
  Input?: ComponentType<InputProps>
  /** Whether the other values leave it without meaning. */
  isHidden?(values: FormValues): boolean
  /** Whether the browser must not keep what is typed. */
  isSecret?: boolean
}

const CurrentValues = createContext<FormValues>({})

/** Returns what the form around an input holds now. */
export const useFormValues = () => useContext(CurrentValues)

type FieldFormProps<Saved> = {
  /** What a button outside of the form names: `<Button type="submit" form={id}>`. */
  id: string
  fields: readonly FormField[]
  /** The thing that is changed; without it, the form makes a new one. */
  before?: FormValues
  /** The name under which what was typed is kept in the browser until it is saved. */
  draftKey: string
  /** Sends what was typed. `changes` has only what differs from before; a value that was removed is null. */
  save(changes: FormValues, values: FormValues): Promise<Saved>
  onSaved(saved: Saved): void
}

const isEqual = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/** Returns what changed; a value that was removed is null. */
export const toChanges = (values: FormValues, before: FormValues): FormValues =>
  Object.fromEntries(
    Object.entries(values)
      .filter(([key, value]) => !isEqual(value, before[key]))
      .map(([key, value]) => [key, value ?? null]),
  )

const toValues = (fields: readonly FormField[], before?: FormValues): FormValues =>
  Object.fromEntries(fields.map(({ key, default: initial }) => [key, before ? before[key] : initial]))

/** A form that is made from descriptions of fields. The server's refusals stand at their fields, and Ctrl-Enter saves. */
export function FieldForm<Saved>({ id, fields, before, draftKey, save, onSaved }: FieldFormProps<Saved>) {
  const [draft] = useState(() => readDraft<FormValues>(draftKey))
  const [isRestored, setIsRestored] = useState(draft !== undefined)
  const [values, setValues] = useState<FormValues>(() => ({ ...toValues(fields, before), ...draft }))
  const saving = useMutation({
    mutationFn: () => {
      const shown = Object.fromEntries(
        fields.filter((field) => !field.isHidden?.(values)).map(({ key }) => [key, values[key]]),
      )
      return save(toChanges(shown, before ?? {}), shown)
    },
    onSuccess: (saved) => {
      removeDraft(draftKey)
      setIsRestored(false)
      onSaved(saved)
    },
  })
  const change = (key: string, value: unknown) => {
    const next = { ...values, [key]: value }
    setValues(next)
    const kept = fields.filter(({ isSecret }) => !isSecret)
    const keptValues = Object.fromEntries(kept.map((field) => [field.key, next[field.key]]))
    keepDraft(draftKey, toChanges(keptValues, toValues(fields, before)))
  }
  const discardDraft = () => {
    removeDraft(draftKey)
    setIsRestored(false)
    setValues(toValues(fields, before))
  }
  const submit = (event?: FormEvent) => {
    event?.preventDefault()
    saving.mutate()
  }
  const handleKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit()
  }
  const shown = fields.filter((field) => !field.isHidden?.(values))
  const isShownAtField = shown.some(({ key }) => findFieldError(saving.error, key))
  return (
    <form id={id} onSubmit={submit} onKeyDown={handleKey} noValidate>
      <Stack gap="sm">
        {isRestored && (
          <Text size="xs" c="dimmed" role="status">
            What you typed before is here again.{' '}
            <Anchor component="button" type="button" size="xs" onClick={discardDraft}>
              Discard it
            </Anchor>
          </Text>
        )}
        {saving.error && !isShownAtField && <ProblemMessage error={saving.error} />}
        <CurrentValues value={values}>
          {shown.map((field, n) => (
            <FieldInput
              key={field.key}
              field={field}
              value={values[field.key]}
              error={findFieldError(saving.error, field.key)}
              autoFocus={!before && n === 0}
              onChange={(value) => change(field.key, value)}
            />
          ))}
        </CurrentValues>
      </Stack>
    </form>
  )
}

type FieldInputProps = {
  field: FormField
  value: unknown
  error?: string
  autoFocus: boolean
  onChange: (value: unknown) => void
}

function FieldInput({ field, value, error, autoFocus, onChange }: FieldInputProps) {
  const Input = field.Input ?? (field.multi ? TextListInput : fieldKinds[field.type].Input)
  return (
    <Input
      field={field}
      value={value}
      onChange={onChange}
      error={error}
      label={field.title || field.key}
      description={field.description}
      required={field.required}
      autoFocus={autoFocus}
    />
  )
}
