import { Button, Group } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { newId } from '../api/new-id'

const UNDO_TIME_MS = 8_000

/** Says what was done. */
export const showNotice = (message: string) => notifications.show({ message })

/** Says what failed, where no field or screen can. */
export const showProblem = (error: unknown) =>
  notifications.show({ color: 'red', message: error instanceof Error ? error.message : String(error) })

/** Says what was done, and offers to undo it for a while. */
export function showUndo(message: string, undo: () => Promise<unknown>) {
  const id = newId()
  const undoNow = () => {
    notifications.hide(id)
    undo().catch(showProblem)
  }
  notifications.show({
    id,
    autoClose: UNDO_TIME_MS,
    message: (
      <Group justify="space-between" wrap="nowrap">
        {message}
        <Button variant="subtle" onClick={undoNow}>
          Undo
        </Button>
      </Group>
    ),
  })
}
