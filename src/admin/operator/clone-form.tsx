import { Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { TaskFormActions } from './task-form-actions'

type CloneFormProps = { tenant: string; isStarting: boolean; onClone: (as: string) => void; onCancel: () => void }

/** A form for the new tenant to which a tenant is copied. */
export function CloneForm({ tenant, isStarting, onClone, onCancel }: CloneFormProps) {
  const [as, setAs] = useState('')
  return (
    <form
      aria-label="Copy"
      onSubmit={(event) => {
        event.preventDefault()
        onClone(as.trim())
      }}
    >
      <Stack gap="sm">
        <TextInput
          label="Id of the new tenant"
          description="Lower-case letters, digits and hyphens."
          value={as}
          onChange={(event) => setAs(event.currentTarget.value)}
          data-autofocus
        />
        <Text size="sm" c="dimmed">
          It gets all data as they are now, and the users with their passwords, but neither hosts nor sessions and
          tokens. Its integrations, schedules and plugins work as those of {tenant}: suspend it before they call others.
        </Text>
        <TaskFormActions label="Copy tenant" isReady={!!as.trim()} isStarting={isStarting} onCancel={onCancel} />
      </Stack>
    </form>
  )
}
