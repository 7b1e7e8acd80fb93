import { Stack, Text } from '@mantine/core'
import { RelativeTime } from '../../ui/relative-time'
import { operatorApi } from '../operator-api'
import { LostSecrets } from './lost-secrets'
import { OpenTenant } from './open-tenant'
import type { ResultProps, TaskKind } from './task-kind'

/** Restores a backup, as a new tenant or in place of the data. */
export const restore: TaskKind<'restore'> = {
  start: (id, body) => {
    const query = body.as ? {} : { confirm: id }
    return operatorApi.POST('/operator/tenants/{id}/restore', { params: { path: { id }, query }, body })
  },
  title: ({ as }) => (as ? `Restore as ${as}` : 'Restore in place of its data'),
  running: ({ as }) => (as ? `Restoring a backup as ${as}.` : 'Restoring a backup in place of the data.'),
  subject: ({ as }) => (as ? `The restore as ${as}` : 'The restore'),
  doneText: 'is done',
  repeat: ({ input, problem }) =>
    problem?.code === 'OTHER_KEYS'
      ? { label: 'Restore without its secrets', input: { ...input, dropSecrets: true } }
      : { label: 'Start the restore again', input },
  Result: RestoreResult,
}

function RestoreResult({ input, result, finished }: ResultProps<'restore'>) {
  const { tenant, created, rows, ms, trash, lostSecrets } = result
  return (
    <Stack gap="xs" align="flex-start">
      <Text size="sm" c="dimmed">
        Restored{input.as ? ` as ${tenant}` : ''} <RelativeTime time={finished} />: {rows.toLocaleString()} rows in{' '}
        {(ms / 1_000).toFixed(1)} s, from the backup of {new Date(created).toLocaleString()}.
        {trash && ` The replaced files are in ${trash}.`}
      </Text>
      <LostSecrets count={lostSecrets} />
      {input.as && <OpenTenant id={tenant} />}
    </Stack>
  )
}
