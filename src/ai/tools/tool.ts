import type { PublicCtx } from '../../accounts/context'

/** A tool that a model may call, and that the server runs. */
export type Tool = {
  name: string
  description: string
  /** A JSON Schema of an object. */
  parameters: Record<string, unknown>
  /** What a call does to what exists. */
  effect: 'reads' | 'adds' | 'overwrites' | 'unknown'
  /** Runs the tool with the rights of the caller (`ctx.actor`). @throws Problem, which the model gets to see */
  run(calling: ToolContext, input: Record<string, unknown>): Promise<unknown>
}

export type RemainingAgentRuns = { left: number }

/** The limit of agent runs for one request: each agent may call many others, at once and in many rounds. */
export const MAX_AGENT_RUNS = 50

/** The context of a tool call. */
export type ToolContext = {
  ctx: PublicCtx
  /** The request that waits for the result. */
  request?: Request
  signal: AbortSignal
  /** How many nested runs of integrations led to the call. */
  depth: number
  /** How many agents may still run for the original caller. All nested runs share it. */
  agents: RemainingAgentRuns
  /** The `queryParams` of the caller, for lambdas. */
  query: Record<string, unknown>
}

/** Returns the tools of one kind for the names that an agent lists, as far as the caller may use them. */
export type ToolKind = (ctx: PublicCtx, named: string[]) => Promise<Tool[]>
