import { Button, Checkbox, Group, Modal, Select, Stack } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { Field } from '../api/schema'
import { findFieldFlaw } from '../fields/validation'
import { ValueInput } from '../fields/value-input'

type BulkChangeProps = {
  title: string
  action: string
  fields: Field[]
  onSubmit: (field: Field, value: unknown) => void
  onClose: () => void
}

/** Chooses the field and the value that many entities get. */
export function BulkChangeDialog({ title, action, fields, onSubmit, onClose }: BulkChangeProps) {
  const [key, setKey] = useState<string | null>(null)
  const [value, setValue] = useState<unknown>()
  const [isRemoved, setIsRemoved] = useState(false)
  const [flaw, setFlaw] = useState<string>()
  const field = fields.find((each) => each.key === key)
  const choose = (next: string | null) => {
    setKey(next)
    setValue(undefined)
    setIsRemoved(false)
    setFlaw(undefined)
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!field) return
    const foundFlaw = isRemoved ? undefined : findFieldFlaw({ ...field, required: true }, value)
    setFlaw(foundFlaw)
    if (!foundFlaw) onSubmit(field, isRemoved ? null : value)
  }
  return (
    <Modal opened title={title} onClose={onClose}>
      <form onSubmit={submit} noValidate>
        <Stack gap="sm">
          <Select
            label="Field"
            data={fields.map((each) => ({ value: each.key, label: each.title || each.key }))}
            value={key}
            onChange={choose}
            searchable
            data-autofocus
          />
          {field && !isRemoved && (
            <ValueInput
              key={field.key}
              field={{ ...field, required: false }}
              value={value}
              onChange={setValue}
              error={flaw}
              label={field.type === 'boolean' ? undefined : 'New value'}
              aria-label="New value"
            />
          )}
          {field && !field.required && (
            <Checkbox
              label="Remove the value"
              checked={isRemoved}
              onChange={(event) => setIsRemoved(event.currentTarget.checked)}
            />
          )}
        </Stack>
        <Group mt="md" justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" disabled={!field}>
            {action}
          </Button>
        </Group>
      </form>
    </Modal>
  )
}
