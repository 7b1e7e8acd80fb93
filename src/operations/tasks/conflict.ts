import { Problem } from '../../core/problem'
import { type TaskInput, type TaskKindName, taskKinds, usesOf } from './index'
import type { TaskUse } from './task-kind'

/** A task as the table `operator_tasks` stores it. */
type StoredTask = { _id: string; kind: string; tenant: string; input: Record<string, unknown> }

const NOUNS: Record<TaskKindName, string> = { move: 'move', backup: 'backup', restore: 'restore', clone: 'copy' }

const toUse = ({ kind, tenant, input }: StoredTask): TaskUse =>
  kind in taskKinds
    ? usesOf(kind as TaskKindName, tenant, input as TaskInput<TaskKindName>) // the kind wrote it
    : { reads: [], changes: [tenant] } // a later version runs it

const changesWhatIsUsed = ({ changes }: TaskUse, { reads, changes: others }: TaskUse) =>
  changes.some((name) => reads.includes(name) || others.includes(name))

/** Checks that a task does not disturb those that run. @throws 409 TASK_RUNNING */
export function assertUndisturbed(task: StoredTask, running: StoredTask[]) {
  const use = toUse(task)
  const other = running.find((one) => {
    const otherUse = toUse(one)
    return changesWhatIsUsed(use, otherUse) || changesWhatIsUsed(otherUse, use)
  })
  if (!other) return
  const noun = NOUNS[other.kind as TaskKindName] ?? 'task'
  throw new Problem(
    409,
    'TASK_RUNNING',
    `A ${noun} of the tenant "${other.tenant}" is running. Try again when it has ended: /operator/tasks/${other._id} tells how far it is.`,
    { details: { task: other._id, kind: other.kind, tenant: other.tenant } },
  )
}
