import type { LambdaRequest } from '../lambdas/request'

/** The reason and the input of a run. */
export type Invocation = {
  /** Stays the same in each retry. */
  _id: string
  trigger: 'webhook' | 'event' | 'schedule' | 'chat' | 'tool'
  /** The request, as lambdas receive it. */
  input: LambdaRequest
  /** The event, or the due time of a schedule, that triggered the run. */
  event?: EventPayload
  /** The request that waits for the run; a background run has none. */
  request?: Request
  /** What the attempt before brought, when this is a retry. */
  lastOutcome?: unknown
  /** Aborted when another process takes over the job. */
  signal?: AbortSignal
  /** How many more agents may run for the original call, when an agent started this run. */
  agents?: { left: number }
}

/** An invocation with its integration, and the depth of its chain of runs, which includes this run. */
export type TargetInvocation = Invocation & { integration: string; depth: number }

/** An event, or a due time in the shape of an event. */
export type EventPayload = {
  _id: string
  source: string
  kind: string
  eventName: string
  description: string
  metadata: Record<string, unknown>
  user: string | null
  workspace: string | null
  created: string
}

/** Returns the payload for targets without code: the event, or else the request with its caller. */
export const toPayload = ({ event, input }: Invocation): object => event ?? input
