import { backup } from './backup'
import { clone } from './clone'
import { move } from './move'
import { restore } from './restore'
import type { TaskKind, TaskKindName, TaskOrder } from './task-kind'

const taskKinds: { [Name in TaskKindName]: TaskKind<Name> } = { move, backup, restore, clone }

/** Returns the words of a kind of task, and how it is started. */
export const kindOf = <Name extends TaskKindName>(name: Name): TaskKind<Name> => taskKinds[name]

/** Starts a task. Resolves when it has ended, or is answered while it runs. @throws ApiProblem, ConnectionLost */
export const startTask = <Name extends TaskKindName>(tenant: string, { kind, input }: TaskOrder<Name>) =>
  kindOf(kind).start(tenant, input)
