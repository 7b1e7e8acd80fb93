import { Alert } from '@mantine/core'
import { IconAlertTriangle } from '@tabler/icons-react'
import type { Integration } from '../api/schema'

/** What a saved integration or plugin waits for although nothing is known to record it. */
export function EventWarnings({ warnings = [] }: Pick<Integration, 'warnings'>) {
  return warnings.map(({ path, message }) => (
    <Alert key={path} color="yellow" mb="md" icon={<IconAlertTriangle size={16} />}>
      {message}
    </Alert>
  ))
}
