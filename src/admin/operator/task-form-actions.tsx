import { Button, Group } from '@mantine/core'

type TaskFormActionsProps = {
  label: string
  isReady: boolean
  isStarting: boolean
  /** Whether the task replaces data. */
  isDangerous?: boolean
  onCancel: () => void
}

/** The buttons of a form that starts a task: the one that sends it, and the one that closes it. */
export const TaskFormActions = ({ label, isReady, isStarting, isDangerous, onCancel }: TaskFormActionsProps) => (
  <Group gap="xs">
    <Button type="submit" disabled={!isReady} loading={isStarting} color={isDangerous ? 'red.9' : undefined}>
      {label}
    </Button>
    <Button variant="default" onClick={onCancel}>
      Cancel
    </Button>
  </Group>
)
