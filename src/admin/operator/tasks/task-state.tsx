import { Alert, Button, Code, Progress, Stack, Text } from '@mantine/core'
import type { OperatorTask } from '../../api/schema'
import { RelativeTime } from '../../ui/relative-time'
import type { TaskKindName, TaskOf, TaskOrder } from './task-kind'
import { kindOf } from './task-kinds'

type StateProps = { task: OperatorTask; onRepeat: (order: TaskOrder<TaskKindName>) => void }

/** What became of a task, or how far it is. */
export function TaskState({ task, onRepeat }: StateProps) {
  if (task.status === 'running') return <TaskProgress task={task} />
  if (task.status === 'succeeded') return <TaskResult task={task} />
  return <TaskFailure task={task} onRepeat={onRepeat} />
}

function TaskProgress({ task: { kind, input, progress } }: { task: TaskOf<TaskKindName> }) {
  const { running, doneText } = kindOf<TaskKindName>(kind)
  const fraction = progress?.fraction ?? null
  const percent = fraction === null ? null : Math.round(100 * fraction)
  return (
    <Stack gap={6}>
      <Text size="sm" role="status">
        {running(input)} {progress?.message}
        {percent !== null && ` ${percent} % ${doneText}.`}
      </Text>
      <Progress
        value={percent ?? 100}
        animated={percent === null}
        aria-label={`Progress of the ${kind}`}
        size="sm"
        transitionDuration={0}
      />
    </Stack>
  )
}

function TaskResult({ task: { kind, input, result, finished } }: { task: TaskOf<TaskKindName> }) {
  const { Result } = kindOf<TaskKindName>(kind)
  return result && finished && <Result input={input} result={result} finished={finished} />
}

function TaskFailure({ task, onRepeat }: StateProps) {
  const { kind, input, problem, updated, status } = task
  const { subject, repeat } = kindOf<TaskKindName>(kind)
  const repeated = repeat(task)
  return (
    <Alert color="red" variant="light" role="alert">
      <Stack gap="xs" align="flex-start">
        <div>
          {subject(input)} {status === 'interrupted' ? 'was interrupted' : 'failed'} <RelativeTime time={updated} />.{' '}
          {problem?.message}
        </div>
        {problem && <Code>{problem.code}</Code>}
        <Button size="xs" variant="default" onClick={() => onRepeat({ kind, input: repeated.input })}>
          {repeated.label}
        </Button>
      </Stack>
    </Alert>
  )
}
