import type { Ctx, PublicCtx } from '../../accounts/context'
import { Problem } from '../../core/problem'
import { disableIdleTimeout, restoreIdleTimeout } from '../../tenancy/client-connection'
import { FairSemaphore } from '../../tenancy/fair-semaphore'
import type { ChatTarget } from '../agents'
import type { CompletionRequest } from '../shapes'
import { estimateTokens } from '../token-estimate'
import { type ExpectedUsage, reserveBudget } from '../usage/budgets'
import { calculateCost } from '../usage/prices'
import { callerGoneProblem, shutdownProblem } from './errors'
import type { TokenUsage } from './model-call'
import { toCompletion } from './openai-response'
import { streamTurn } from './sse-stream'
import type { Turn } from './turn'
import { prepareTurn, type TurnOptions } from './turn-setup'
import { recordFailedStart, saveFailedTurn, saveTurn } from './turn-store'

/** Completions of a tenant at a time, in this process: whoever has them stream without end leaves room to others. */
const completionSlots = new FairSemaphore(Number.POSITIVE_INFINITY, 0, { perTenant: 1_000 })

const activeControllers = new Set<AbortController>()

/** Ends all completions of this process, which keep what was said; who waits for them is told. */
export function abortAllTurns() {
  for (const abortController of activeControllers) abortController.abort(shutdownProblem())
}

/** A place among those that run, until `leave` is called. @throws 503 */
export async function acquireTurnSlot(ctx: PublicCtx, abortController: AbortController): Promise<() => void> {
  const released = Promise.withResolvers<void>()
  const acquired = Promise.withResolvers<void>()
  completionSlots
    .run(ctx, () => {
      acquired.resolve()
      return released.promise
    })
    .catch(acquired.reject)
  await acquired.promise
  activeControllers.add(abortController)
  return () => {
    activeControllers.delete(abortController)
    released.resolve()
  }
}

/**
 * Has an agent answer: with a stream of server-sent events where that is asked for, by the body or by `Accept`, else with a
 * completion as OpenAI's API has it, or with what the client's tools are to do.
 * @throws 400, 404, 409, 429 BUDGET_EXCEEDED, 502 AI_UPSTREAM_ERROR, 503 AI_UPSTREAM_BUSY, 504 AI_UPSTREAM_TIMEOUT
 */
export async function complete(
  ctx: Ctx,
  agent: ChatTarget,
  completionRequest: CompletionRequest,
  request: Request,
  options: Pick<TurnOptions, 'thread' | 'toolbox'> = {},
) {
  const acceptsStream = request.headers.get('accept')?.includes('text/event-stream')
  const abortController = new AbortController()
  const releaseSlot = await acquireTurnSlot(ctx, abortController)
  let releaseBudget = () => {}
  const abort = () => abortController.abort(callerGoneProblem())
  if (request.signal.aborted) abort()
  request.signal.addEventListener('abort', abort, { once: true })
  const cleanUp = () => {
    request.signal.removeEventListener('abort', abort)
    restoreIdleTimeout(request)
    releaseSlot()
    releaseBudget()
  }
  try {
    disableIdleTimeout(request)
    releaseBudget = await reserveBudget(ctx, await estimateUsage(ctx, agent, completionRequest))
    const turn = await prepareOrRecordFailure(ctx, agent, completionRequest, { ...options, request, abortController })
    if (completionRequest.stream ?? acceptsStream) return await streamTurn(turn, cleanUp)
    const answer = await runToCompletion(turn)
    cleanUp()
    return Response.json(answer)
  } catch (error) {
    cleanUp()
    throw error
  }
}

const DEFAULT_COMPLETION_TOKENS = 1_000 // tokens, where nobody says at most how many
const MAX_EXPECTED_TOKENS = 4_000 // that are expected at most: who asks for more than they take keeps it from others meanwhile

/** What an answer may take, as far as that can be known before. */
async function estimateUsage(
  ctx: PublicCtx,
  { target }: ChatTarget,
  { messages, ...completionParameters }: CompletionRequest,
): Promise<ExpectedUsage> {
  const completion = Math.min(
    completionParameters.max_tokens ?? target.max_tokens ?? DEFAULT_COMPLETION_TOKENS,
    MAX_EXPECTED_TOKENS,
  )
  const usage: TokenUsage = { prompt: estimateTokens(JSON.stringify(messages)), completion, estimated: true }
  const cost = await calculateCost(ctx, completionParameters.model || target.model || '*', usage)
  return { tokens: usage.prompt + completion, cost }
}

/** A turn that may be run. What it took before it came to nothing is kept, too, and that a source has failed. */
async function prepareOrRecordFailure(
  ctx: PublicCtx,
  agent: ChatTarget,
  completionRequest: CompletionRequest,
  options: TurnOptions,
) {
  const usage: TokenUsage = { prompt: 0, completion: 0, estimated: false }
  const startTime = performance.now()
  try {
    return await prepareTurn(ctx, agent, completionRequest, { ...options, usage })
  } catch (error) {
    const { code } = error instanceof Problem ? error : { code: 'INTERNAL' }
    if (usage.prompt || code.startsWith('AI_UPSTREAM'))
      await recordFailedStart(ctx, agent, completionRequest, { how: options, usage, started: startTime, code })
    throw error
  }
}

/** Has an agent answer somebody who takes no stream, or nobody. */
export async function completeWithoutStream(
  ctx: PublicCtx,
  agent: ChatTarget,
  completionRequest: CompletionRequest,
  options: TurnOptions,
): Promise<object> {
  const releaseSlot = await acquireTurnSlot(ctx, options.abortController)
  let releaseBudget = () => {}
  try {
    // For whoever waits for it, it was counted already.
    releaseBudget = await reserveBudget(
      ctx,
      options.agents ? undefined : await estimateUsage(ctx, agent, completionRequest),
    )
    return await runToCompletion(await prepareOrRecordFailure(ctx, agent, completionRequest, options))
  } finally {
    releaseSlot()
    releaseBudget()
  }
}

/** Runs a turn to its end. @throws what callers are told */
async function runToCompletion(turn: Turn): Promise<object> {
  try {
    await turn.run(false)
  } catch (error) {
    throw await saveFailedTurn(turn, error)
  }
  await saveTurn(turn, 'completed')
  return toCompletion(turn)
}
