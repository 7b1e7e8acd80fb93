import { Anchor, Button, Group, Modal, Progress, ScrollArea, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { Blueprint } from '../api/schema'
import { RowList } from '../ui/row-list'
import type { BulkProgress } from './bulk-run'

type BulkProgressProps = {
  blueprint: Pick<Blueprint, 'key' | 'name'>
  progress: BulkProgress
  onStop: () => void
  onClose: () => void
}

/** How far the work on many entities has come, and what the server refused of it. */
export function BulkProgressDialog({ blueprint, progress, onStop, onClose }: BulkProgressProps) {
  const { done, total, failures, isRunning } = progress
  return (
    <Modal opened title={blueprint.name} onClose={isRunning ? onStop : onClose} closeOnClickOutside={false}>
      <Progress
        value={total ? ((done + failures.length) / total) * 100 : 100}
        aria-label="Progress"
        transitionDuration={100}
      />
      <Text size="sm" mt="xs" role="status">
        {done.toLocaleString()} of {total.toLocaleString()} done
        {failures.length > 0 && `, ${failures.length.toLocaleString()} refused`}
      </Text>
      {failures.length > 0 && (
        <ScrollArea.Autosize mah={320} mt="sm" type="auto">
          <RowList
            label="Refused"
            rows={failures}
            rowKey={({ identifier }) => identifier}
            empty=""
            render={({ identifier, label, message }) => ({
              title: (
                <Anchor
                  component={Link}
                  to="/data/$blueprint/$identifier"
                  params={{ blueprint: blueprint.key, identifier } as never}
                  search={true as never}
                  onClick={onClose}
                >
                  <bdi>{label}</bdi>
                </Anchor>
              ),
              text: message,
            })}
          />
        </ScrollArea.Autosize>
      )}
      <Group justify="flex-end" mt="md">
        {isRunning ? (
          <Button variant="default" onClick={onStop}>
            Stop
          </Button>
        ) : (
          <Button onClick={onClose}>Close</Button>
        )}
      </Group>
    </Modal>
  )
}
