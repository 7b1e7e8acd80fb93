import { backup } from './backup'
import { clone } from './clone'
import { move } from './move'
import { restore } from './restore'
import type { PreparedTask, TaskKind, TaskUse } from './task-kind'

/** The kinds of tasks by the name that the table `operator_tasks` stores. */
export const taskKinds = { move, backup, restore, clone }
export type TaskKindName = keyof typeof taskKinds

/** What a kind of task is given. */
export type TaskInput<Name extends TaskKindName> = Parameters<(typeof taskKinds)[Name]['prepare']>[1]
type TaskResult<Name extends TaskKindName> = Awaited<
  ReturnType<Awaited<ReturnType<(typeof taskKinds)[Name]['prepare']>>['run']>
>

/** The same kinds, typed by their names: so TypeScript knows that an input fits the kind that it is for. */
const kinds: { [Name in TaskKindName]: TaskKind<TaskInput<Name>, TaskResult<Name>> } = taskKinds

/** Returns the work of a kind for a tenant, which nothing refuses any more. @throws Problem */
export const prepareTask = <Name extends TaskKindName>(
  kind: Name,
  tenant: string,
  input: TaskInput<Name>,
): Promise<PreparedTask<TaskResult<Name>>> => kinds[kind].prepare(tenant, input)

/** Returns which tenants' data a task reads and changes. */
export const usesOf = <Name extends TaskKindName>(kind: Name, tenant: string, input: TaskInput<Name>): TaskUse =>
  kinds[kind].uses(tenant, input)
