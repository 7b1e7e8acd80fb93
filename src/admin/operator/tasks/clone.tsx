import { Stack, Text } from '@mantine/core'
import { RelativeTime } from '../../ui/relative-time'
import { operatorApi } from '../operator-api'
import { LostSecrets } from './lost-secrets'
import { OpenTenant } from './open-tenant'
import type { TaskKind } from './task-kind'

/** Copies a tenant, as it is now, to a new one. */
export const clone: TaskKind<'clone'> = {
  start: (id, body) => operatorApi.POST('/operator/tenants/{id}/clone', { params: { path: { id } }, body }),
  title: ({ as }) => `Copy to ${as}`,
  running: ({ as }) => `Copying to ${as}.`,
  subject: ({ as }) => `The copy to ${as}`,
  doneText: 'is done',
  repeat: ({ input }) => ({ label: 'Start the copy again', input }),
  Result: ({ result: { tenant, ms, lostSecrets, omittedSecrets }, finished }) => (
    <Stack gap="xs" align="flex-start">
      <Text size="sm" c="dimmed">
        Copied to {tenant} <RelativeTime time={finished} />, in {(ms / 1_000).toFixed(1)} s.
      </Text>
      <LostSecrets count={lostSecrets} />
      {omittedSecrets.length > 0 && (
        <Text size="sm" c="dimmed">
          Left out, and to be entered again: {omittedSecrets.join(', ')}.
        </Text>
      )}
      <OpenTenant id={tenant} />
    </Stack>
  ),
}
