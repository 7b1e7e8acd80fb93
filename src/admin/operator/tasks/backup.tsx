import { Text } from '@mantine/core'
import { formatBytes } from '../../ui/format-bytes'
import { RelativeTime } from '../../ui/relative-time'
import { operatorApi } from '../operator-api'
import type { TaskKind } from './task-kind'

/** Makes a backup of a tenant. */
export const backup: TaskKind<'backup'> = {
  start: (id) => operatorApi.POST('/operator/tenants/{id}/backups', { params: { path: { id } } }),
  title: () => 'Backup',
  running: () => 'Backing up.',
  subject: () => 'The backup',
  doneText: 'is done',
  repeat: ({ input }) => ({ label: 'Back up again', input }),
  Result: ({ result: { bytes, ms, place }, finished }) => (
    <Text size="sm" c="dimmed">
      Backed up <RelativeTime time={finished} />: {formatBytes(bytes)} in {(ms / 1_000).toFixed(1)} s, at {place}.
    </Text>
  ),
}
