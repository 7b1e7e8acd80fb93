import type { Ctx, OpenCtx } from '../../accounts/guard'
import { Problem } from '../../core/problem'
import { waitsLong, waitsNoLonger } from '../../tenancy/caller'
import { Turns } from '../../tenancy/turns'
import type { Answering } from '../agents'
import type { Asked } from '../shapes'
import { tokensIn } from '../tokens'
import { type Expected, withinBudget } from '../usage/budgets'
import { costOf } from '../usage/prices'
import { completion } from './answer'
import { begin, type How } from './beginning'
import { failed, keep, neverBegan } from './ending'
import { gone, stopped } from './failures'
import type { Usage } from './model'
import { streamed } from './stream'
import type { Turn } from './turn'

/** Completions of a tenant at a time, in this process: whoever has them stream without end leaves room to others. */
const running = new Turns(Number.POSITIVE_INFINITY, 0, { each: 1_000 })

const endings = new Set<AbortController>()

/** Ends all completions of this process, which keep what was said; who waits for them is told. */
export function endTurns() {
  for (const ending of endings) ending.abort(stopped())
}

/** A place among those that run, until `leave` is called. @throws 503 */
export async function enter(ctx: OpenCtx, ending: AbortController): Promise<() => void> {
  const over = Promise.withResolvers<void>()
  const entered = Promise.withResolvers<void>()
  running
    .take(ctx, () => {
      entered.resolve()
      return over.promise
    })
    .catch(entered.reject)
  await entered.promise
  endings.add(ending)
  return () => {
    endings.delete(ending)
    over.resolve()
  }
}

/**
 * Has an agent answer: with a stream of server-sent events where that is asked for, by the body or by `Accept`, else with a
 * completion as OpenAI's API has it, or with what the client's tools are to do.
 * @throws 400, 404, 409, 429 BUDGET_EXCEEDED, 502 AI_UPSTREAM_ERROR, 503 AI_UPSTREAM_BUSY, 504 AI_UPSTREAM_TIMEOUT
 */
export async function complete(
  ctx: Ctx,
  agent: Answering,
  asked: Asked,
  request: Request,
  more: Pick<How, 'thread' | 'toolbox'> = {},
) {
  const accepts = request.headers.get('accept')?.includes('text/event-stream')
  const ending = new AbortController()
  const leave = await enter(ctx, ending)
  let counted = () => {}
  const abort = () => ending.abort(gone())
  if (request.signal.aborted) abort()
  request.signal.addEventListener('abort', abort, { once: true })
  const over = () => {
    request.signal.removeEventListener('abort', abort)
    waitsNoLonger(request)
    leave()
    counted()
  }
  try {
    waitsLong(request)
    counted = await withinBudget(ctx, await expected(ctx, agent, asked))
    const turn = await begun(ctx, agent, asked, { ...more, request, ending })
    if (asked.stream ?? accepts) return await streamed(turn, over)
    const answer = await whole(turn)
    over()
    return Response.json(answer)
  } catch (error) {
    over()
    throw error
  }
}

const ANSWER = 1_000 // tokens, where nobody says at most how many
const LONG = 4_000 // that are expected at most: who asks for more than they take keeps it from others meanwhile

/** What an answer may take, as far as that can be known before. */
async function expected(ctx: OpenCtx, { target }: Answering, { messages, ...asked }: Asked): Promise<Expected> {
  const completion = Math.min(asked.max_tokens ?? target.max_tokens ?? ANSWER, LONG)
  const usage: Usage = { prompt: tokensIn(JSON.stringify(messages)), completion, estimated: true }
  const cost = await costOf(ctx, asked.model || target.model || '*', usage)
  return { tokens: usage.prompt + completion, cost }
}

/** A turn that may be run. What it took before it came to nothing is kept, too, and that a source has failed. */
async function begun(ctx: OpenCtx, agent: Answering, asked: Asked, how: How) {
  const usage: Usage = { prompt: 0, completion: 0, estimated: false }
  const started = performance.now()
  try {
    return await begin(ctx, agent, asked, { ...how, usage })
  } catch (error) {
    const { code } = error instanceof Problem ? error : { code: 'INTERNAL' }
    if (usage.prompt || code.startsWith('AI_UPSTREAM'))
      await neverBegan(ctx, agent, asked, { how, usage, started, code })
    throw error
  }
}

/** Has an agent answer somebody who takes no stream, or nobody. */
export async function answered(ctx: OpenCtx, agent: Answering, asked: Asked, how: How): Promise<object> {
  const leave = await enter(ctx, how.ending)
  let counted = () => {}
  try {
    // For whoever waits for it, it was counted already.
    counted = await withinBudget(ctx, how.agents ? undefined : await expected(ctx, agent, asked))
    return await whole(await begun(ctx, agent, asked, how))
  } finally {
    leave()
    counted()
  }
}

/** Runs a turn to its end. @throws what callers are told */
async function whole(turn: Turn): Promise<object> {
  try {
    await turn.run(false)
  } catch (error) {
    throw await failed(turn, error)
  }
  await keep(turn, 'completed')
  return completion(turn)
}
