import { Alert, Button, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { fetchData } from '../api/client'
import { ApiProblem } from '../api/problem'
import type { ListedBackup, OperatorTask, OperatorTenant } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { BackupList } from './backup-list'
import { CloneForm } from './clone-form'
import { operatorApi, refetchOperator } from './operator-api'
import { RestoreForm } from './restore-form'
import type { TaskKindName, TaskOrder } from './tasks/task-kind'
import { startTask } from './tasks/task-kinds'
import { isRunning, latestTaskQuery } from './tasks/task-queries'
import { TaskState } from './tasks/task-state'

type OpenForm = { kind: 'restore'; backup: ListedBackup } | { kind: 'clone' } | undefined

/** The backups of a tenant, how it is backed up, restored and copied, and how the latest of that is or went. */
export function TenantBackups({ tenant }: { tenant: OperatorTenant }) {
  const { id } = tenant
  const [openForm, setForm] = useState<OpenForm>()
  const { data: backups, error } = useQuery({
    queryKey: ['operator', 'backups', id],
    queryFn: () => fetchData(operatorApi.GET('/operator/tenants/{id}/backups', { params: { path: { id } } })),
  })
  const start = useMutation({
    mutationFn: (order: TaskOrder<TaskKindName>) => startTask(id, order),
    onSuccess: () => setForm(undefined),
    onSettled: refetchOperator,
  })
  const { data: task } = useQuery(latestTaskQuery(id, ['backup', 'restore', 'clone'], start.isPending))
  const isBusy = isRunning(task) || start.isPending
  const form = isRunning(task) ? undefined : openForm
  const endedTask = task && !isRunning(task) ? task._id : undefined
  useEffect(() => {
    if (endedTask) void refetchOperator()
  }, [endedTask])
  const open = (next: OpenForm) => {
    start.reset()
    setForm(next)
  }
  const startConfirmed = async (order: TaskOrder<TaskKindName>) => {
    const isReplacing = order.kind === 'restore' && !('as' in order.input && order.input.as)
    if (!isReplacing || (await confirmReplacement(id))) start.mutate(order)
  }
  const isWithoutTarget = error instanceof ApiProblem && error.code === 'NO_BACKUP_TARGET'
  return (
    <PanelSection
      title="Backups"
      action={
        backups &&
        !form &&
        !isBusy && (
          <Button variant="default" onClick={() => start.mutate({ kind: 'backup', input: {} })}>
            Back up now
          </Button>
        )
      }
    >
      <Stack gap="sm">
        {isWithoutTarget && (
          <Text size="sm" c="dimmed">
            {error.message}
          </Text>
        )}
        {error && !isWithoutTarget && <ProblemMessage error={error} m={0} />}
        {start.error && <ProblemMessage error={start.error} m={0} />}
        {task && !form && !isPast(task, tenant) && <TaskState task={task} onRepeat={startConfirmed} />}
        <LastFailure tenant={tenant} task={task} />
        {form?.kind === 'restore' && (
          <RestoreForm
            key={form.backup.name}
            tenant={id}
            backup={form.backup}
            isStarting={start.isPending}
            onRestore={(as) =>
              startConfirmed({ kind: 'restore', input: { backup: form.backup.name, ...(as && { as }) } })
            }
            onCancel={() => open(undefined)}
          />
        )}
        {backups && (
          <BackupList backups={backups} isBusy={isBusy} onRestore={(backup) => open({ kind: 'restore', backup })} />
        )}
        {form?.kind === 'clone' && (
          <CloneForm
            isStarting={start.isPending}
            onClone={(input) => start.mutate({ kind: 'clone', input })}
            onCancel={() => open(undefined)}
          />
        )}
        {!form && !isBusy && (
          <Button variant="default" mr="auto" onClick={() => open({ kind: 'clone' })}>
            Copy to a new tenant…
          </Button>
        )}
      </Stack>
    </PanelSection>
  )
}

const confirmReplacement = (id: string) =>
  confirmAction({
    title: `Replace the data of the tenant ${id}?`,
    text: 'Its users, data and settings become those of the backup. Later changes are lost.',
    action: 'Replace data',
    typedName: id,
  })

/** Whether a backup failed before another one succeeded, such as one by the schedule. */
const isPast = ({ kind, status, updated }: OperatorTask, { backup }: OperatorTenant) =>
  kind === 'backup' && status !== 'running' && !!backup?.created && backup.created > updated

/** Why the latest backup failed, unless it is the task that is shown. */
function LastFailure({ tenant: { backup }, task }: { tenant: OperatorTenant; task: OperatorTask | null | undefined }) {
  if (!backup?.problem || !backup.failed || task?.problem?.message === backup.problem) return null
  return (
    <Alert color="red" variant="light" role="alert">
      The latest backup failed <RelativeTime time={backup.failed} />. {backup.problem}
    </Alert>
  )
}
