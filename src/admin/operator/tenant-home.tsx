import { Button, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { ApiProblem } from '../api/problem'
import type { OperatorTenant } from '../api/schema'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { describeHome } from './homes'
import { MoveForm } from './move-form'
import { refetchOperator, tenantQuery } from './operator-api'
import { startTask } from './tasks/task-kinds'
import { homesQuery, isRunning, latestTaskQuery } from './tasks/task-queries'
import { TaskState } from './tasks/task-state'

const TENANT_POLL_INTERVAL_MS = 2_000

/** Where a tenant is stored, how it is moved, and how the latest move is or went. */
export function TenantHome({ tenant: { id, home } }: { tenant: OperatorTenant }) {
  const [isOpen, setOpen] = useState(false)
  const { data: homes, error } = useQuery(homesQuery)
  const start = useMutation({
    mutationFn: (to: string) => startTask(id, { kind: 'move', input: { to } }),
    onSuccess: () => setOpen(false),
    onSettled: refetchOperator,
  })
  // Another operator or the command line moves it: their task may not be recorded yet, or never is.
  const isMovedByOthers = start.error instanceof ApiProblem && start.error.code === 'TENANT_MOVING'
  useQuery({ ...tenantQuery(id), refetchInterval: isMovedByOthers ? TENANT_POLL_INTERVAL_MS : false })
  const { data: task } = useQuery(latestTaskQuery(id, ['move'], start.isPending || isMovedByOthers))
  const isMoving = isRunning(task)
  const endedTask = task && !isMoving ? task._id : undefined
  const { reset } = start
  useEffect(() => {
    // The tenant is elsewhere now, and what was chosen or refused meanwhile is out of date.
    setOpen(false)
    reset()
    if (endedTask) void refetchOperator()
  }, [endedTask, home, reset])
  // The command line may have moved it since.
  const isPast = !!task?.result && task.result.to !== (home ?? 'sqlite')
  const isFormShown = isOpen && !isMoving && homes
  const openForm = () => {
    start.reset()
    setOpen(true)
  }
  return (
    <PanelSection
      title="Home"
      action={
        homes?.sqlite.usable &&
        !isOpen &&
        !isMoving && (
          <Button variant="default" onClick={openForm}>
            Move…
          </Button>
        )
      }
    >
      <Stack gap="sm">
        <Text size="sm">{describeHome(home)}</Text>
        {homes?.problem && (
          <Text size="sm" c="dimmed">
            It can be moved to PostgreSQL once ATOLL_DATABASE_URL is set and “atoll postgres init” has run.
          </Text>
        )}
        {error && <ProblemMessage error={error} m={0} />}
        {start.error && <ProblemMessage error={start.error} m={0} />}
        {isFormShown && (
          <MoveForm
            homes={homes}
            home={home}
            isStarting={start.isPending}
            onMove={start.mutate}
            onCancel={() => setOpen(false)}
          />
        )}
        {task && !isFormShown && !isPast && <TaskState task={task} onRepeat={() => start.mutate(task.input.to)} />}
      </Stack>
    </PanelSection>
  )
}
