import { Stack } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, type KeyboardEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { findFieldError } from '../api/problem'
import { queryClient } from '../api/queries'
import type { Blueprint, Entity, Field } from '../api/schema'
import { fieldKinds } from '../fields'
import { TextListInput } from '../fields/text-input'
import { ProblemMessage } from '../ui/problem-message'

type EntityFormProps = {
  id: string
  blueprint: Blueprint
  /** Without one, the form creates it. */
  entity?: Entity
  etag?: string
  onSaved: (entity: Entity) => void
}

type Values = Record<string, unknown>

/** Returns what changed; a value that was removed is null. */
const toChanges = (values: Values, before: Values): Values =>
  Object.fromEntries(
    Object.entries(values)
      .filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key]))
      .map(([key, value]) => [key, value ?? null]),
  )

/** A form that is made from the fields of a blueprint. */
export function EntityForm({ id, blueprint, entity, etag, onSaved }: EntityFormProps) {
  const { key, fields, computed = {} } = blueprint
  const before: Values = entity ?? {}
  const [values, setValues] = useState<Values>(() =>
    Object.fromEntries(fields.map((field) => [field.key, entity ? entity[field.key] : field.default])),
  )
  const save = useMutation({
    mutationFn: async () => {
      const saved = entity
        ? await fetchData(
            api.PUT('/api/blueprints/{key}/entities/{identifier}', {
              params: { path: { key, identifier: entity.identifier } },
              body: toChanges(values, before) as never,
              headers: etag ? { 'if-match': etag } : {},
            }),
          )
        : await fetchData(
            api.POST('/api/blueprints/{key}/entities', {
              params: { path: { key } },
              body: Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never,
            }),
          )
      return saved as Entity
    },
    onSuccess: async (saved) => {
      await queryClient.invalidateQueries({ queryKey: ['entities', key] })
      notifications.show({ message: entity ? 'Saved.' : 'Created.' })
      onSaved(saved)
    },
  })
  const submit = (event?: FormEvent) => {
    event?.preventDefault()
    save.mutate()
  }
  const handleKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit()
  }
  const isShownAtField = fields.some((field) => findFieldError(save.error, field.key))
  return (
    <form id={id} onSubmit={submit} onKeyDown={handleKey} noValidate>
      <Stack gap="sm">
        {save.error && !isShownAtField && <ProblemMessage error={save.error} />}
        {fields
          .filter((field) => !(field.key in computed))
          .map((field, n) => (
            <FieldInput
              key={field.key}
              field={field}
              value={values[field.key]}
              error={findFieldError(save.error, field.key)}
              autoFocus={!entity && n === 0}
              onChange={(value) => setValues((all) => ({ ...all, [field.key]: value }))}
            />
          ))}
      </Stack>
    </form>
  )
}

type FieldInputProps = {
  field: Field
  value: unknown
  error?: string
  autoFocus: boolean
  onChange: (value: unknown) => void
}

function FieldInput({ field, value, error, autoFocus, onChange }: FieldInputProps) {
  const Input = field.multi ? TextListInput : fieldKinds[field.type].Input
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
