/** A kind of long work that the operator starts for a tenant. */
export type TaskKind<Input, Result> = {
  /** Tells the operator how a task is finished that ended with the server that ran it. */
  stoppedMessage: string
  /** Returns which tenants' data it reads and changes; no other task may change them meanwhile. */
  uses(tenant: string, input: Input): TaskUse
  /** Returns the work, which nothing refuses any more, and which is disposed of after it has run. @throws Problem */
  prepare(tenant: string, input: Input): Promise<PreparedTask<Result>>
}

/** What a task reads and changes: ids of tenants, or names of other things that one task at a time may change. */
export type TaskUse = { reads: string[]; changes: string[] }

/** Work that can begin. */
export type PreparedTask<Result> = AsyncDisposable & { run(control: TaskControl): Promise<Result> }

/** What a task reports while it runs, and what ends it early. */
export type TaskControl = {
  /** Receives the latest line about it. */
  onProgress(line: string): void
  /** Receives how much is done, from 0 to 1; null where that is unknown. */
  onFraction(fraction: number | null): void
  /** Ends the work at its next safe moment, because the server stops. */
  signal: AbortSignal
}
