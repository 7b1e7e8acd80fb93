import type { Ctx, PublicCtx } from '../../accounts/context'
import { badRequest, notFound, Problem } from '../../core/problem'
import { parseOptional } from '../../core/shapes'
import { assertQuotaLeft } from '../../limits/quota-check'
import type { ChatTarget } from '../agents'
import type { Draft } from '../builders/kinds/index'
import { retrieveKnowledge } from '../knowledge/retrieval'
import type { CompletionRequest } from '../shapes'
import { openSource } from '../sources/sources'
import type { MessageRow } from '../threads'
import * as threads from '../threads'
import { estimateTokens } from '../token-estimate'
import { parseClientTools } from '../tools/client-tools'
import { MAX_AGENT_RUNS, type RemainingAgentRuns } from '../tools/tool'
import { loadTools, type Tools } from '../tools/tools'
import { type Message, toConversationMessage } from './conversation'
import { measureThread, readRecentMessages, requestSummary, selectHistory, toMessage } from './history'
import { restoreOriginals } from './kept-turns'
import {
  assertToolCallsExist,
  assertValidMessages,
  loadStoredResults,
  toInstructionMessages,
  toModelMessages,
  toSystemMessages,
} from './model-messages'
import { findNewMessages } from './new-messages'
import type { TokenUsage } from './reply'
import { Turn, type TurnExtras, type TurnInput } from './turn'

const MAX_THREAD_MESSAGES = 10_000 // per thread
const MAX_THREAD_BYTES = 32 << 20 // of all its messages, which a read of the thread returns at once
const MAX_MESSAGE_LENGTH = 1 << 20 // characters

export type TurnOptions = {
  /** The id of the thread that the turn continues. */
  thread?: string
  request?: Request
  /** How many nested runs of integrations led to the turn. */
  depth?: number
  /** How many agents may still run for the original caller. */
  agents?: RemainingAgentRuns
  abortController: AbortController
  /** Tools to use instead of those that the agent names. */
  toolbox?: Toolbox
  extras?: TurnExtras
}

/** Tools, and the list to which they add drafts. */
export type Toolbox = { tools: Tools; drafts: Draft[] }

/**
 * Returns a turn that is ready to run. The tokens that its preparation takes are added to `usage`, also when it fails.
 * @throws 400, 403 QUOTA_EXCEEDED, 404 THREAD_NOT_FOUND, INTEGRATION_SOURCE_NOT_FOUND, 409 THREAD_TOO_LONG
 */
export async function prepareTurn(
  ctx: PublicCtx,
  agent: ChatTarget,
  completionRequest: CompletionRequest,
  {
    thread: id,
    request,
    depth = 0,
    agents = { left: MAX_AGENT_RUNS },
    abortController,
    toolbox,
    extras = {},
    usage,
  }: TurnOptions & { usage: TokenUsage },
): Promise<Turn> {
  const { target } = agent
  const sent = completionRequest.messages.map(toConversationMessage)
  assertValidMessages(sent, target)
  const source = await openSource(ctx, target.sourceId)
  const tools = toolbox?.tools ?? (await loadTools(ctx, target))
  const clientToolsByName = parseClientTools(completionRequest, tools)
  const resumed = parseOptional(id) ? await resumeThread(ctx as Ctx, agent, sent, id!) : undefined
  const startsThread = !resumed && !!target.recordThread && !!ctx.actor && !!agent._id
  if (resumed || startsThread) await assertQuotaLeft(ctx, 'storage') // its messages are stored
  const newMessages = resumed?.newMessages ?? (await restoreOriginals(ctx, agent._id, sent))
  assertToolCallsExist(resumed?.rows.map(toMessage) ?? [], newMessages)
  const { signal } = abortController
  const turn = new Turn({
    ...{
      ctx,
      agent,
      source,
      completionRequest,
      newMessages,
      tools,
      usage,
      extras,
      abortController,
      startsThread,
      clientTools: clientToolsByName,
      citations: [],
    },
    messages: toInstructionMessages(target, completionRequest),
    thread: resumed?.thread ?? (startsThread ? threads.newThreadRow(ctx as Ctx, agent._id!) : undefined),
    drafts: toolbox?.drafts ?? [],
    toolContext: { ctx, request, signal, depth, query: completionRequest.queryParams ?? {}, agents },
  })
  await loadModelContext(turn, resumed?.rows)
  return turn
}

/** Adds the history, the summary and the knowledge to the messages of a turn, which may call other models. */
async function loadModelContext({ input, model, signal }: Turn, rows?: MessageRow[]) {
  const { ctx, agent, source, thread, newMessages, usage } = input
  const summarize = async (excerpts: string) => {
    const { content, counted } = await requestSummary(source, model, excerpts, signal)
    usage.prompt += counted?.prompt ?? estimateTokens(excerpts)
    usage.completion += counted?.completion ?? estimateTokens(content ?? '')
    usage.estimated ||= !counted
    return content
  }
  if (rows) input.history = await selectHistory(thread!, rows, agent.target.historyTokens, summarize)
  const conversation = [...(input.history?.rows.map(toMessage) ?? []), ...newMessages]
  const storedResults = await loadStoredResults(ctx, agent._id, conversation)
  const { text: excerpts, citations } = await loadKnowledge(input, rows && thread!._id)
  const summary = input.history?.summary
  const summaryText = summary ? `What was said before, in short:\n${summary.content}` : ''
  input.citations = citations
  input.messages.push(...toSystemMessages(excerpts, summaryText), ...toModelMessages(conversation, storedResults))
}

/** Returns a thread, its recent messages, and those of the client's messages that are new to it. */
async function resumeThread(ctx: Ctx, { _id }: ChatTarget, sent: Message[], id: string) {
  const thread = await threads.getThreadRow(ctx, id)
  // Admins may read the threads of others, but not write to them.
  if (thread.user !== ctx.actor.user || thread.integration !== _id) notFound('thread')
  const longIndex = sent.findIndex(({ content }) => (content?.length ?? 0) > MAX_MESSAGE_LENGTH)
  if (longIndex >= 0)
    badRequest({
      path: `/messages/${longIndex}/content`,
      message: `A message of a thread may have at most ${MAX_MESSAGE_LENGTH} characters.`,
    })
  const rows = await readRecentMessages(ctx.db, id)
  const newMessages = findNewMessages(rows, sent)
  const count = (rows.at(-1)?.number ?? 0) + newMessages.length
  if (count > MAX_THREAD_MESSAGES || (await measureThread(ctx.db, id)) >= MAX_THREAD_BYTES)
    throw new Problem(
      409,
      'THREAD_TOO_LONG',
      `A thread may have at most ${MAX_THREAD_MESSAGES} messages, and ${MAX_THREAD_BYTES >> 20} MiB of text. Start a new one.`,
    )
  return { thread, rows, newMessages }
}

/** Returns the excerpts from the agent's vector stores that match the last user message. */
async function loadKnowledge(
  { ctx, agent: { _id, target }, completionRequest, abortController: { signal } }: TurnInput,
  thread: string | undefined,
) {
  const asked = completionRequest.messages.findLast(({ role }) => role === 'user')
  const question = asked && toConversationMessage(asked).content
  if (!_id || !target.vectorStores?.length || !question) return { text: '', citations: [] }
  return retrieveKnowledge(ctx, { integration: { _id, target }, thread, question, signal })
}
