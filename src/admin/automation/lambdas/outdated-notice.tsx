import { Alert, Button, Group } from '@mantine/core'

type OutdatedNoticeProps = { version: number; onCompare: () => void; onKeep: () => void; onDiscard: () => void }

/** Says that somebody saved another version while this one was edited, and lets the user choose between them. */
export const OutdatedNotice = ({ version, onCompare, onKeep, onDiscard }: OutdatedNoticeProps) => (
  <Alert color="yellow" variant="light" mb="sm" title={`Version ${version} was saved in the meantime`}>
    <Group gap="xs">
      <Button variant="default" onClick={onCompare}>
        Compare
      </Button>
      <Button variant="default" onClick={onKeep}>
        Keep my version
      </Button>
      <Button variant="default" onClick={onDiscard}>
        Discard my version
      </Button>
    </Group>
  </Alert>
)
