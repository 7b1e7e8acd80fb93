import { Text } from '@mantine/core'
import { RelativeTime } from '../../ui/relative-time'
import { nameHome } from '../homes'
import { operatorApi } from '../operator-api'
import type { ResultProps, TaskKind } from './task-kind'

/** Takes a tenant to another home. */
export const move: TaskKind<'move'> = {
  start: (id, body) => operatorApi.POST('/operator/tenants/{id}/move', { params: { path: { id } }, body }),
  title: ({ to }) => `Move to ${nameHome(to)}`,
  running: ({ to }) => `Moving to ${nameHome(to)}.`,
  subject: ({ to }) => `The move to ${nameHome(to)}`,
  doneText: 'of the rows are copied',
  repeat: ({ input }) => ({ label: 'Start the move again', input }),
  Result: MoveResult,
}

function MoveResult({ result: { from, to, rows, ms, waited, trash }, finished }: ResultProps<'move'>) {
  if (from === to) return null
  return (
    <Text size="sm" c="dimmed">
      Moved from {nameHome(from)} <RelativeTime time={finished} />: {rows.toLocaleString()} rows in{' '}
      {(ms / 1_000).toFixed(1)} s; writes waited {waited} ms.
      {trash && ` The files that it left are in ${trash}.`}
    </Text>
  )
}
