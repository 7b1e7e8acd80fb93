import type { ReactNode } from 'react'
import type { OperatorTask } from '../../api/schema'

/** The tasks by their kinds. */
type Tasks = { [Task in OperatorTask as Task['kind']]: Task }
export type TaskKindName = keyof Tasks
export type TaskOf<Name extends TaskKindName> = Tasks[Name]

/** What a task of a kind begins with. */
export type TaskOrder<Name extends TaskKindName> = { kind: Name; input: TaskOf<Name>['input'] }

type TaskWords<Name extends TaskKindName> = (input: TaskOf<Name>['input']) => string

/** How a kind of task is started, and the words for it. */
export type TaskKind<Name extends TaskKindName> = {
  start(tenant: string, input: TaskOf<Name>['input']): Promise<unknown>
  /** What it does, such as "Move to bucket main/b2 of PostgreSQL". */
  title: TaskWords<Name>
  /** What is being done, as the beginning of a sentence. */
  running: TaskWords<Name>
  /** The task as the subject of a sentence. */
  subject: TaskWords<Name>
  /** What a percentage counts, such as "of the rows are copied". */
  doneText: string
  /** What the button is called that starts a failed task again, and with which input. */
  repeat(task: TaskOf<Name>): { label: string; input: TaskOf<Name>['input'] }
  /** What came out of a task that succeeded. */
  Result(props: ResultProps<Name>): ReactNode
}

export type ResultProps<Name extends TaskKindName> = {
  input: TaskOf<Name>['input']
  result: NonNullable<TaskOf<Name>['result']>
  finished: string
}
