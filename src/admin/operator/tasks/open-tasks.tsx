import { Anchor } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { OperatorTask } from '../../api/schema'
import { RowList } from '../../ui/row-list'
import { StateTag } from '../../ui/state-tag'
import type { TaskKindName } from './task-kind'
import { kindOf } from './task-kinds'
import { latestTasksQuery } from './task-queries'

const STATES = {
  running: { label: 'Under way', tone: 'neutral' },
  succeeded: { label: 'Done', tone: 'good' },
  failed: { label: 'Failed', tone: 'bad' },
  interrupted: { label: 'Interrupted', tone: 'bad' },
} as const

/** Returns which of the latest tasks are under way, or did not succeed. Those that did are events. */
export function useOpenTasks(): OperatorTask[] {
  const { data = [] } = useQuery(latestTasksQuery)
  return data.filter((task, place) => task.status === 'running' || isLatestFailure(data, place))
}

/** Tasks with their states, which lead to their tenants. */
export function OpenTasks({ tasks }: { tasks: OperatorTask[] }) {
  return (
    <RowList
      label="Tasks"
      rows={tasks}
      rowKey={({ _id }) => _id}
      empty=""
      render={({ tenant, kind, input, status, progress, problem }) => ({
        title: (
          <>
            <Anchor component={Link} to={`/operator/tenants/${tenant}`} size="sm">
              {tenant}
            </Anchor>
            {kindOf<TaskKindName>(kind).title(input)}
            <StateTag {...STATES[status]} />
          </>
        ),
        text: problem?.message ?? progress?.message,
      })}
    />
  )
}

/** Whether the task at this place did not succeed, and its tenant had none of the kind since. */
function isLatestFailure(tasks: OperatorTask[], place: number) {
  const task = tasks[place]
  return (
    (task?.status === 'failed' || task?.status === 'interrupted') &&
    tasks.findIndex(({ tenant, kind }) => tenant === task.tenant && kind === task.kind) === place
  )
}
