import { Alert, Button, Code, Progress, Stack, Text } from '@mantine/core'
import type { OperatorTask } from '../api/schema'
import { RelativeTime } from '../ui/relative-time'
import { nameHome } from './homes'

/** What became of the latest move of a tenant, or how far it is. */
export function MoveState({ task, onRepeat }: { task: OperatorTask; onRepeat: (to: string) => void }) {
  if (task.status === 'running') return <MoveProgress task={task} />
  if (task.status === 'succeeded') return <MoveResult task={task} />
  return <MoveFailure task={task} onRepeat={onRepeat} />
}

function MoveProgress({ task: { input, progress } }: { task: OperatorTask }) {
  const fraction = progress?.fraction ?? null
  const percent = fraction === null ? null : Math.round(100 * fraction)
  return (
    <Stack gap={6}>
      <Text size="sm" role="status">
        Moving to {nameHome(input.to)}. {progress?.message}
        {percent !== null && ` ${percent} % of the rows are copied.`}
      </Text>
      <Progress
        value={percent ?? 100}
        animated={percent === null}
        aria-label="Progress of the move"
        size="sm"
        transitionDuration={0}
      />
    </Stack>
  )
}

function MoveResult({ task: { result, finished } }: { task: OperatorTask }) {
  if (!result || !finished || result.from === result.to) return null
  const numbers = `${result.rows.toLocaleString()} rows in ${(result.ms / 1_000).toFixed(1)} s; writes waited ${result.waited} ms.`
  return (
    <Text size="sm" c="dimmed">
      Moved from {nameHome(result.from)} <RelativeTime time={finished} />: {numbers}
      {result.trash && ` The files that it left are in ${result.trash}.`}
    </Text>
  )
}

function MoveFailure({ task, onRepeat }: { task: OperatorTask; onRepeat: (to: string) => void }) {
  const { input, problem, updated } = task
  const word = task.status === 'interrupted' ? 'was interrupted' : 'failed'
  return (
    <Alert color="red" variant="light" role="alert">
      <Stack gap="xs" align="flex-start">
        <div>
          The move to {nameHome(input.to)} {word} <RelativeTime time={updated} />. {problem?.message}
        </div>
        {problem && <Code>{problem.code}</Code>}
        <Button size="xs" variant="default" onClick={() => onRepeat(input.to)}>
          Start the move again
        </Button>
      </Stack>
    </Alert>
  )
}
