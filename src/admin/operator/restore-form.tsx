import { Radio, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { ListedBackup } from '../api/schema'
import { TaskFormActions } from './task-form-actions'

type RestoreFormProps = {
  tenant: string
  backup: ListedBackup
  isStarting: boolean
  /** Restores it as a new tenant; without an id in place of the data of its own. */
  onRestore: (as: string | undefined) => void
  onCancel: () => void
}

/** A form for where a backup is restored, with what happens then. */
export function RestoreForm({ tenant, backup, isStarting, onRestore, onCancel }: RestoreFormProps) {
  const [place, setPlace] = useState('new')
  const [as, setAs] = useState('')
  const isNew = place === 'new'
  return (
    <form
      aria-label="Restore"
      onSubmit={(event) => {
        event.preventDefault()
        onRestore(isNew ? as.trim() : undefined)
      }}
    >
      <Stack gap="sm">
        <Radio.Group
          label={`Restore the backup of ${new Date(backup.created).toLocaleString()}`}
          value={place}
          onChange={setPlace}
        >
          <Stack gap="xs" mt="xs">
            <Radio value="new" label="As a new tenant" />
            <Radio value="same" label={`In place of the data of ${tenant}`} />
          </Stack>
        </Radio.Group>
        {isNew && (
          <TextInput
            label="Id of the new tenant"
            description="Lower-case letters, digits and hyphens."
            value={as}
            onChange={(event) => setAs(event.currentTarget.value)}
          />
        )}
        <Text size="sm" c="dimmed">
          {isNew
            ? `The new tenant has the users with their passwords, but neither hosts nor sessions and tokens. Its integrations, schedules and plugins work as those of ${tenant}: suspend it before they call others.`
            : 'Changes since the backup are replaced once the backup has been read and checked.'}
        </Text>
        <TaskFormActions
          label={isNew ? 'Restore as new tenant' : 'Replace its data…'}
          isReady={!isNew || !!as.trim()}
          isStarting={isStarting}
          isDangerous={!isNew}
          onCancel={onCancel}
        />
      </Stack>
    </form>
  )
}
