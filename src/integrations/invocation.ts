import type { LambdaRequest } from '../lambdas/request'

/** Why a target is run, and with what. */
export type Invocation = {
  /** The same whenever the same is tried again. */
  _id: string
  trigger: 'webhook' | 'event' | 'schedule' | 'chat' | 'tool'
  /** What came in, as lambdas see it. */
  input: LambdaRequest
  /** What has happened, or what time it is, where that is why. */
  event?: EventPayload
  /** The request that waits for it; nobody does, where there is none. */
  request?: Request
  /** Aborted when somebody else is to do it. */
  signal?: AbortSignal
  /** How many agents may still be run for whoever began it, where an agent did. */
  agents?: { left: number }
}

/** The same, for a target: of which integration's run, and how many runs lead to it, with this one. */
export type TargetInvocation = Invocation & { integration: string; depth: number }

/** An event, or a time that has come told as one. */
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

/** What targets without code are given: what has happened, or else the request, with who asks. */
export const toPayload = ({ event, input }: Invocation): object => event ?? input
