import { Button, Group, Modal, Progress, ScrollArea, Table, Text } from '@mantine/core'
import type { BulkProgress } from './bulk-run'

type BulkProgressProps = { title: string; progress: BulkProgress; onStop: () => void; onClose: () => void }

/** How far the work on many entities has come, and what the server refused of it. */
export function BulkProgressDialog({ title, progress, onStop, onClose }: BulkProgressProps) {
  const { done, total, failures, isRunning } = progress
  return (
    <Modal opened title={title} onClose={isRunning ? onStop : onClose} closeOnClickOutside={false}>
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
        <ScrollArea.Autosize mah={240} mt="sm" type="auto">
          <Table aria-label="Refused">
            <Table.Tbody>
              {failures.map(({ identifier, message }) => (
                <Table.Tr key={identifier}>
                  <Table.Td maw={160} style={{ overflow: 'hidden', textOverflow: 'ellipsis' }}>
                    <bdi>{identifier}</bdi>
                  </Table.Td>
                  <Table.Td>{message}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
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
