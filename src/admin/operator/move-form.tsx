import { Select, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import type { OperatorHomes } from '../api/schema'
import { listTargets } from './homes'
import { TaskFormActions } from './task-form-actions'

type MoveFormProps = {
  homes: OperatorHomes
  /** Where the tenant is; left out for a file. */
  home: string | undefined
  isStarting: boolean
  onMove: (to: string) => void
  onCancel: () => void
}

/** A form for the home to which a tenant is moved, with what happens then. */
export function MoveForm({ homes, home, isStarting, onMove, onCancel }: MoveFormProps) {
  const targets = listTargets(homes, home)
  const [to, setTo] = useState<string | null>(home ? null : 'postgres')
  return (
    <form
      aria-label="Move"
      onSubmit={(event) => {
        event.preventDefault()
        if (to) onMove(to)
      }}
    >
      <Stack gap="sm">
        <Select
          label="New home"
          placeholder="Choose a home"
          data={targets}
          value={to}
          onChange={setTo}
          allowDeselect={false}
        />
        <Text size="sm" c="dimmed">
          The tenant is served throughout, and nothing is lost: its rows are copied and compared. At the end, writes
          wait for up to 200 ms.{to === 'sqlite' && ' Then only the server on this machine can serve it.'}
        </Text>
        <TaskFormActions label="Move tenant" isReady={!!to} isStarting={isStarting} onCancel={onCancel} />
      </Stack>
    </form>
  )
}
