import { Group } from '@mantine/core'
import type { OperatorTenant } from '../api/schema'
import { RelativeTime } from '../ui/relative-time'
import { StateTag } from '../ui/state-tag'

/** When a tenant was backed up last, with a tag where the latest attempt failed or another backup is due. */
export const LastBackup = ({ backup, backupOverdue }: Pick<OperatorTenant, 'backup' | 'backupOverdue'>) => (
  <Group gap={6} wrap="nowrap">
    {backup?.problem ? (
      <StateTag label="Failed" tone="bad" />
    ) : (
      backupOverdue && <StateTag label={backup?.created ? 'Overdue' : 'Missing'} tone="warning" />
    )}
    {backup?.created && <RelativeTime time={backup.created} />}
  </Group>
)
