import type { Ctx, PublicCtx } from '../../accounts/context'
import { toWorkOwner } from '../../accounts/work-owner'
import { WorkTurns } from '../../accounts/work-turns'
import { FairShare } from '../../core/fair-share'
import { Problem } from '../../core/problem'
import type { WorkOwner } from '../../core/turn-queue'
import { disableIdleTimeout, restoreIdleTimeout } from '../../tenancy/client-connection'
import type { ChatTarget } from '../agents'
import type { CompletionRequest } from '../shapes'
import { estimateMessageTokens } from '../token-estimate'
import { type ExpectedUsage, reserveBudget } from '../usage/budgets'
import { calculateCost } from '../usage/prices'
import { callerGoneProblem, shutdownProblem, toTurnProblem } from './errors'
import { ownFormat } from './openai-response'
import type { TokenUsage } from './reply'
import { streamTurn } from './sse-stream'
import type { Turn } from './turn'
import { prepareTurn, type TurnOptions } from './turn-setup'
import { recordFailedStart, saveFailedTurn, saveTurn } from './turn-store'

/** Limits the concurrent completions in this process, so that endless streams leave room for others. */
const completionShare = new FairShare({ running: { perTenant: 1_000, perCaller: 500 } })

const activeControllers = new Set<AbortController>()

/** Aborts all completions of this process. Their partial answers are saved, and their clients get a 503. */
export function abortAllTurns() {
  for (const abortController of activeControllers) abortController.abort(shutdownProblem())
}

/** Takes a slot to run a turn in. Returns the function that releases it. @throws 503 BUSY when there is none left */
export function acquireTurnSlot(owner: WorkOwner, abortController: AbortController): () => void {
  const release = completionShare.reserve(owner)
  activeControllers.add(abortController)
  return () => {
    activeControllers.delete(abortController)
    release()
  }
}

/**
 * Returns the answer of an agent: a stream of server-sent events if the body or the header `Accept` asks for it, else a
 * completion in the format of OpenAI's API, or the calls of client tools.
 * @throws 400, 404, 409, 429 BUDGET_EXCEEDED, 502 AI_UPSTREAM_ERROR, 503 AI_UPSTREAM_BUSY, 504 AI_UPSTREAM_TIMEOUT
 */
export async function complete(
  ctx: Ctx,
  agent: ChatTarget,
  completionRequest: CompletionRequest,
  request: Request,
  options: Pick<TurnOptions, 'thread' | 'toolbox' | 'extras'> = {},
) {
  const acceptsStream = request.headers.get('accept')?.includes('text/event-stream')
  const abortController = new AbortController()
  const releaseSlot = acquireTurnSlot(toWorkOwner(ctx, request), abortController)
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

const DEFAULT_COMPLETION_TOKENS = 1_000 // tokens, if neither the request nor the agent sets max_tokens
const MAX_EXPECTED_TOKENS = 4_000 // tokens; a higher reservation than is used would block other requests meanwhile

/** Estimates the tokens and the cost of a completion before it runs. */
async function estimateUsage(
  ctx: PublicCtx,
  { target }: ChatTarget,
  { messages, ...completionParameters }: CompletionRequest,
): Promise<ExpectedUsage> {
  const completion = Math.min(
    completionParameters.max_tokens ?? target.max_tokens ?? DEFAULT_COMPLETION_TOKENS,
    MAX_EXPECTED_TOKENS,
  )
  const prompt = await new WorkTurns(ctx).run(() => estimateMessageTokens(messages))
  const usage: TokenUsage = { prompt, completion, estimated: true }
  const cost = await calculateCost(ctx, completionParameters.model || target.model || '*', usage)
  return { tokens: usage.prompt + completion, cost }
}

/** Returns a turn that is ready to run. If that fails, records the tokens used so far, and the failure of the source. */
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
      await recordFailedStart(ctx, agent, completionRequest, { options, usage, startTime, code })
    throw toTurnProblem(error, options.abortController.signal)
  }
}

/** Returns the answer of an agent without streaming, such as for a trigger. @throws what `complete` throws */
export async function completeWithoutStream(
  ctx: PublicCtx,
  agent: ChatTarget,
  completionRequest: CompletionRequest,
  options: TurnOptions,
): Promise<object> {
  const releaseSlot = acquireTurnSlot(toWorkOwner(ctx), options.abortController)
  let releaseBudget = () => {}
  try {
    // A run for another agent is part of that agent's reservation.
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

/** Runs a turn to its end, saves it and returns the completion. @throws the Problem for the caller */
async function runToCompletion(turn: Turn): Promise<object> {
  try {
    await turn.run(false)
  } catch (error) {
    throw await saveFailedTurn(turn, error)
  }
  await saveTurn(turn, 'completed')
  const { format = ownFormat } = turn.input.extras
  return format.toCompletion(turn)
}
