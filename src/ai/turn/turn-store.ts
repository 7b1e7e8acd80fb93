import { eq, lt, max } from 'drizzle-orm'
import type { PublicCtx } from '../../accounts/context'
import { toStorableText } from '../../core/body'
import { DAY_MS, now, toIsoString } from '../../core/clock'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import { deleteInBatches } from '../../jobs/batch-delete'
import type { Lease } from '../../jobs/with-lease'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { ChatTarget } from '../agents'
import type { CompletionRequest } from '../shapes'
import { getSource } from '../sources/sources'
import { messages, threads, toolResults } from '../tables'
import { insertThread } from '../threads'
import { buildUsageRow, recordCompletion, type UsageStatus } from '../usage/usage-record'
import type { Message } from './conversation'
import { toTurnProblem } from './errors'
import { keepRow, keepSaid, limitKept } from './kept-turns'
import { toStoredResultId } from './model-messages'
import type { TokenUsage } from './reply'
import type { Turn, TurnMessage } from './turn'
import type { TurnOptions } from './turn-setup'

const MAX_TITLE_LENGTH = 80 // characters
const MAX_TITLE_SOURCE_LENGTH = 4_000 // characters that a title is made from
const MAX_SUMMARIES_PER_THREAD = 20

/**
 * Saves a turn in one transaction: its messages in its thread, its usage, and an event. If the turn failed before the model
 * answered anything, the thread gets no messages, so that the client can send them again.
 */
export async function saveTurn(turn: Turn, status: UsageStatus, code?: string): Promise<void> {
  const { ctx, agent, source, thread, startsThread } = turn.input
  const row = await buildUsageRow(ctx, {
    kind: 'completion',
    ...{ integration: agent._id, source: source._id, model: turn.model, thread: thread?._id ?? null },
    ...{ usage: turn.usage, status, durationMs: Math.round(performance.now() - turn.startTime) },
  })
  await ctx.write(async (tx) => {
    if (thread && (status === 'completed' || turn.turnMessages.length)) await appendToThread(tx, turn)
    // Who learns of a new thread from the answer may also go on without it.
    if (turn.pause && (!thread || startsThread)) await keepForContinuation(tx, turn)
    await recordCompletion(ctx, tx, row, code)
  })
}

async function appendToThread(
  tx: Tx,
  { input: { newMessages, thread, startsThread, history }, turnMessages, started }: Turn,
) {
  const { _id, summaries } = thread!
  const updated = toIsoString(now())
  const threadRow = startsThread ? thread! : await tx.select().from(threads).where(eq(threads._id, _id)).get()
  // The thread was removed meanwhile, perhaps with its user.
  if (!threadRow) return
  const firstUserMessage = newMessages.find(({ role }) => role === 'user')?.content
  const changes = {
    title: threadRow.title ?? toTitle(firstUserMessage ?? ''),
    summaries: history?.isNewSummary
      ? [...summaries, history.summary!].slice(-MAX_SUMMARIES_PER_THREAD)
      : threadRow.summaries,
    updated,
  }
  if (!startsThread) await tx.update(threads).set(changes).where(eq(threads._id, _id))
  else if (!(await insertThread(tx, { ...threadRow, ...changes }))) return
  const last = await tx
    .select({ number: max(messages.number) })
    .from(messages)
    .where(eq(messages.thread, _id))
    .get()
  const messageRows = [
    ...newMessages.map((one) => ({ ...toClientMessageRow(one), created: started })),
    ...turnMessages.map((one) => ({ ...toTurnMessageRow(one), created: updated })),
  ]
  const rows = messageRows.map((one, n) => ({ thread: _id, number: (last?.number ?? 0) + n + 1, ...one }))
  if (rows.length) await tx.insert(messages).values(rows)
}

const toClientMessageRow = ({ role, content, name, tool_calls: calls, tool_call_id: id, original }: Message) => ({
  ...{ role, content: content ?? '', name: name ?? null, toolCalls: calls?.length ? calls : null },
  ...{ toolCallId: id ?? null, ours: false, incomplete: false, original: original ?? null },
})

const toTurnMessageRow = ({ role, content, toolCalls, toolCallId, incomplete, said }: TurnMessage) => ({
  ...{ role, content: toStorableText(content), name: null, toolCalls: toolCalls ?? null },
  ...{ toolCallId: toolCallId ?? null, ours: role === 'tool', incomplete: !!incomplete },
  original: said ? { messages: said } : null,
})

/** Returns the title of a thread: the first words of its first message, or null if there are none. */
function toTitle(text: string) {
  const line = text.trim().slice(0, MAX_TITLE_SOURCE_LENGTH).replace(/\s+/g, ' ')
  const title = line.length <= MAX_TITLE_LENGTH ? line : `${line.slice(0, MAX_TITLE_LENGTH - 1).replace(/\s\S*$/, '')}…`
  return title.toWellFormed() || null
}

/** Keeps what the client need not, or cannot, send back: the results of server tools, and what only the provider knows. */
async function keepForContinuation(tx: Tx, { input, pause, turnMessages }: Turn) {
  const { ctx, agent, newMessages: messages } = input
  const created = toIsoString(now())
  for (const { functionCall: call } of pause!.backendResults) {
    const { content } = turnMessages.find(({ toolCallId }) => toolCallId === call.id)!
    await keepRow(tx, { _id: toStoredResultId(ctx, agent._id, call), content, created })
  }
  const calls = [...new Set([...pause!.assistantToolCalls.slice(0, 1), ...pause!.functionCalls])]
  await keepSaid(tx, ctx, agent._id, { said: turnMessages[0]!.said, calls, messages, created })
  await limitKept(tx)
}

/** Records the usage of a turn that failed before it began, such as that of a summary. */
export async function recordFailedStart(
  ctx: PublicCtx,
  { _id, target }: ChatTarget,
  { model }: CompletionRequest,
  { options, usage, startTime, code }: { options: TurnOptions; usage: TokenUsage; startTime: number; code: string },
) {
  const row = await buildUsageRow(ctx, {
    kind: 'completion',
    ...{ integration: _id, source: target.sourceId, thread: options.thread ?? null, usage },
    model: model || target.model || (await getSource(ctx, target.sourceId)).model,
    status: options.abortController.signal.aborted ? 'aborted' : 'failed',
    durationMs: Math.round(performance.now() - startTime),
  })
  await ctx.write((tx) => recordCompletion(ctx, tx, row, code))
}

/** Saves a failed turn, and only logs it if that fails too. Returns the error for the caller. */
export async function saveFailedTurn(turn: Turn, error: unknown): Promise<unknown> {
  const problem = toTurnProblem(error, turn.signal)
  const code = problem instanceof Problem ? problem.code : 'INTERNAL'
  const { tenant } = turn.input.ctx
  await saveTurn(turn, turn.signal.aborted ? 'aborted' : 'failed', code).catch((cause) =>
    logError('TURN_NOT_KEPT', { tenant, cause }),
  )
  return problem
}

/** Removes what is kept of turns that no client has continued for a day. */
export const removeOld = (tenant: Tenant & Lease) =>
  deleteInBatches(tenant, toolResults, toolResults._id, lt(toolResults.created, toIsoString(now() - DAY_MS)))
