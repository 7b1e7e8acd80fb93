import type { PublicCtx } from '../../accounts/context'

/** A tool that a model may call, and that the server runs. */
export type Tool = {
  name: string
  description: string
  /** A JSON Schema of an object. */
  parameters: Record<string, unknown>
  /** Does it with the rights of whoever asked (`ctx.actor`). @throws Problem, which the model is told */
  run(calling: ToolContext, input: Record<string, unknown>): Promise<unknown>
}

export type RemainingAgentRuns = { left: number }

/** So many agents are run for one question: each may call many, at once and in many rounds. */
export const MAX_AGENT_RUNS = 50

/** On whose behalf a tool is called. */
export type ToolContext = {
  ctx: PublicCtx
  /** The request that waits for it. */
  request?: Request
  signal: AbortSignal
  /** How many runs of integrations led to it. */
  depth: number
  /** How many agents may still be run for the caller, by all that is run for them. */
  agents: RemainingAgentRuns
  /** What the caller gave along for lambdas. */
  query: Record<string, unknown>
}

/** A kind of tools: those of what an agent names, as far as the caller may use them. */
export type ToolKind = (ctx: PublicCtx, named: string[]) => Promise<Tool[]>
