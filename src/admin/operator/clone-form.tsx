import { Checkbox, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { TenantClone } from '../api/schema'
import { TaskFormActions } from './task-form-actions'

type CloneFormProps = { isStarting: boolean; onClone: (order: TenantClone) => void; onCancel: () => void }

/** A form for the new tenant to which a tenant is copied. */
export function CloneForm({ isStarting, onClone, onCancel }: CloneFormProps) {
  const [as, setAs] = useState('')
  const [withoutSecrets, setWithoutSecrets] = useState(false)
  return (
    <form
      aria-label="Copy"
      onSubmit={(event) => {
        event.preventDefault()
        onClone({ as: as.trim(), ...(withoutSecrets && { withoutSecrets }) })
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
        <Checkbox
          label="Without secrets"
          description="The keys of its connections, providers and AI sources are left out, and listed afterwards."
          checked={withoutSecrets}
          onChange={(event) => setWithoutSecrets(event.currentTarget.checked)}
        />
        <Text size="sm" c="dimmed">
          It gets all data as they are now, and the users with their passwords, but neither hosts nor sessions and
          tokens. It does nothing outside until you let it: its webhooks, schedules and integrations wait, and it sends
          no mails.
        </Text>
        <TaskFormActions label="Copy tenant" isReady={!!as.trim()} isStarting={isStarting} onCancel={onCancel} />
      </Stack>
    </form>
  )
}
