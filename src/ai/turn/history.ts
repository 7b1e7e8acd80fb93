import { and, desc, eq, gt, lt, sql } from 'drizzle-orm'
import { toStorableText } from '../../core/body'
import { now, toIsoString } from '../../core/clock'
import type { Db } from '../../storage/port'
import type { ThreadSummary } from '../shapes'
import { requestAnswer, type Source } from '../sources/sources'
import { messages, type threads } from '../tables'
import type { MessageRow } from '../threads'
import { estimateMessageTokens, estimateTokens } from '../token-estimate'
import type { Message } from './conversation'
import type { Completion } from './model-call'
import { parseUsage } from './reply'

const DEFAULT_HISTORY_TOKENS = 16_000 // tokens
const MESSAGES_PER_READ = 50
const MAX_HISTORY_MESSAGES = 1_000
const MAX_HISTORY_CHARACTERS = 2 << 20

type Thread = Pick<typeof threads.$inferSelect, '_id' | 'summaries'>

/**
 * Returns the newest messages of a thread, oldest first: as many as a model may get, and as clients may send again.
 */
export async function readRecentMessages(db: Db, thread: string): Promise<MessageRow[]> {
  const rows: MessageRow[] = []
  for (let size = 0; size < MAX_HISTORY_CHARACTERS && rows.length < MAX_HISTORY_MESSAGES; ) {
    const before = rows.length ? lt(messages.number, rows.at(-1)!.number) : gt(messages.number, 0)
    const batch = await db
      .select()
      .from(messages)
      .where(and(eq(messages.thread, thread), before))
      .orderBy(desc(messages.number))
      .limit(MESSAGES_PER_READ)
    rows.push(...batch)
    size += batch.reduce((sum, row) => sum + countCharacters(row), 0)
    if (batch.length < MESSAGES_PER_READ) break
  }
  return rows.reverse()
}

/** Returns the bytes of all messages of a thread. The database knows their lengths without reading them. */
export async function measureThread(db: Db, thread: string): Promise<number> {
  const { content, toolCalls, original } = messages
  const bytes = sql<number>`sum(octet_length(${content}) + coalesce(octet_length(${toolCalls}), 0)
    + coalesce(octet_length(${original}), 0))`
  const [total] = await db.select({ bytes }).from(messages).where(eq(messages.thread, thread))
  return Number(total?.bytes ?? 0)
}

const countCharacters = ({ content, toolCalls, original }: MessageRow) =>
  content.length + (toolCalls ? JSON.stringify(toolCalls).length : 0) + (original ? JSON.stringify(original).length : 0)
const estimateRowTokens = ({ content, toolCalls, original }: MessageRow) =>
  original
    ? estimateMessageTokens(original.messages)
    : estimateTokens(content) + (toolCalls ? estimateTokens(JSON.stringify(toolCalls)) : 0)

export type ModelHistory = {
  /** The messages that the model gets as they are. */
  rows: MessageRow[]
  /** A summary of the messages before them. */
  summary?: ThreadSummary
  /** Whether the summary is new, and has to be saved. */
  isNewSummary: boolean
}

/**
 * Returns the part of a thread that a model gets: all messages since the latest summary if they fit into `budget` (tokens),
 * else those that fit into half of it, and a summary of the rest by `summarize`. The part begins with a user message.
 */
export async function selectHistory(
  { summaries }: Thread,
  rows: MessageRow[],
  budget = DEFAULT_HISTORY_TOKENS,
  summarize: (text: string) => Promise<string | undefined>,
): Promise<ModelHistory> {
  const latest = summaries.at(-1)
  const unsummarized = rows.filter(({ number }) => number > (latest?.upTo ?? 0))
  if (unsummarized.reduce((sum, row) => sum + estimateRowTokens(row), 0) <= budget)
    return { rows: unsummarized, summary: latest, isNewSummary: false }
  const start = findHistoryStart(unsummarized, budget / 2)
  const toSummarize = unsummarized.slice(0, start)
  const content = toSummarize.length ? await summarize(formatForSummary(latest, toSummarize, budget * 4)) : undefined
  if (!content) return { rows: unsummarized.slice(start), summary: latest, isNewSummary: false }
  const summary = { content, upTo: toSummarize.at(-1)!.number, created: toIsoString(now()) }
  return { rows: unsummarized.slice(start), summary, isNewSummary: true }
}

/** Returns the index from which the rows fit into the budget. It is a user message, so no call loses its result. */
function findHistoryStart(rows: MessageRow[], budget: number) {
  const userMessageIndexes = rows.flatMap(({ role }, n) => (role === 'user' ? [n] : []))
  let remainingTokens = budget
  let start = rows.length
  while (start > 0 && remainingTokens - estimateRowTokens(rows[start - 1]!) >= 0)
    remainingTokens -= estimateRowTokens(rows[--start]!)
  return userMessageIndexes.find((n) => n >= start) ?? userMessageIndexes.at(-1) ?? start
}

/** Formats messages for the summary: the beginning of each, about `maxCharacters` in all. */
function formatForSummary(latest: ThreadSummary | undefined, rows: MessageRow[], maxCharacters: number) {
  const charactersPerMessage = Math.max(100, Math.floor(maxCharacters / rows.length))
  const lines = rows
    .filter(({ role, content }) => role !== 'tool' && content)
    .map(({ role, content }) => `${role}: ${content.slice(0, charactersPerMessage)}`)
  return [latest && `Before that, in short: ${latest.content}`, ...lines].filter(Boolean).join('\n')
}

const SUMMARY_PROMPT = `Sum up this conversation in at most 200 words, so that you can continue it later: what the user wants, what
was found out, and what was decided. Keep names, numbers and ids as they are. Answer with the summary alone.`

/** Has a model summarize a conversation. Returns no content if that fails. @throws the reason when it is aborted */
export async function requestSummary(source: Source, model: string, text: string, signal: AbortSignal) {
  const messages = [
    { role: 'system' as const, content: SUMMARY_PROMPT },
    { role: 'user' as const, content: text },
  ]
  try {
    const body = Buffer.from(JSON.stringify({ model, messages, max_tokens: 1_000 }))
    const answer = await requestAnswer(source, '/chat/completions', { body, signal })
    const { choices, usage } = (answer ?? {}) as Completion
    const content = choices?.[0]?.message?.content
    return {
      content: typeof content === 'string' ? toStorableText(content.slice(0, 8_000)) : undefined,
      counted: parseUsage(usage),
    }
  } catch (error) {
    signal.throwIfAborted()
    return { content: undefined, error }
  }
}

/** Returns a stored message as clients and models know it. */
export const toMessage = ({ role, content, name, toolCalls, toolCallId, original }: MessageRow): Message => ({
  ...{ role, content },
  ...(name !== null && { name }),
  ...(toolCalls && { tool_calls: toolCalls }),
  ...(toolCallId !== null && { tool_call_id: toolCallId }),
  ...(original && { original }),
})
