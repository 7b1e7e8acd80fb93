import { Button, Group, Modal, Select, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { User } from '../api/schema'
import { startImpersonation } from '../api/session'
import { toUserLabel, userWorkspacesQuery } from './user-queries'

/** Asks in which workspace an admin acts as a user, and begins. */
export function ImpersonationDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const { data: workspaces = [] } = useQuery(userWorkspacesQuery(user._id))
  const [workspace, setWorkspace] = useState<string | null>(null)
  const name = toUserLabel(user)
  const begin = () => {
    startImpersonation({ user: user._id, name, ...(workspace && { workspace }) })
  }
  return (
    <Modal opened title={`Act as ${name}`} onClose={onClose}>
      <Stack gap="sm">
        <Text size="sm">
          This tab then sees and may do what {name} sees and may do, and no more. What you change is changed by them,
          and each change is recorded. Other tabs stay as they are.
        </Text>
        {workspaces.length > 0 && (
          <Select
            label="Workspace"
            description="New content belongs to this workspace."
            placeholder="None"
            data={workspaces.map(({ _id, name: label }) => ({ value: _id, label: label ?? _id }))}
            value={workspace}
            onChange={setWorkspace}
            clearable
          />
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button onClick={begin} data-autofocus>
            Act as {name}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
