import { and, desc, eq, gt, lt } from 'drizzle-orm'
import { keepableText } from '../../core/body'
import { iso, now } from '../../core/clock'
import type { Db } from '../../storage/port'
import type { NewMessage, Summary } from '../shapes'
import type { Source } from '../sources/sources'
import { messages, type threads } from '../tables'
import type { MessageRow } from '../threads'
import { tokensIn } from '../tokens'
import { countedIn } from './model'

const BUDGET = 16_000 // tokens
const SLICE = 50
const ROWS = 1_000
const CHARACTERS = 2 << 20

type Thread = Pick<typeof threads.$inferSelect, '_id' | 'summaries'>

/** The newest messages of a thread, in their order: as many as any model is told, and clients send again. */
export async function recent(db: Db, thread: string): Promise<MessageRow[]> {
  const rows: MessageRow[] = []
  for (let size = 0; size < CHARACTERS && rows.length < ROWS; ) {
    const before = rows.length ? lt(messages.number, rows.at(-1)!.number) : gt(messages.number, 0)
    const slice = await db
      .select()
      .from(messages)
      .where(and(eq(messages.thread, thread), before))
      .orderBy(desc(messages.number))
      .limit(SLICE)
    rows.push(...slice)
    size += slice.reduce((sum, row) => sum + sizeOf(row), 0)
    if (slice.length < SLICE) break
  }
  return rows.reverse()
}

const sizeOf = ({ content, toolCalls }: MessageRow) =>
  content.length + (toolCalls ? JSON.stringify(toolCalls).length : 0)
const tokensOf = ({ content, toolCalls }: MessageRow) =>
  tokensIn(content) + (toolCalls ? tokensIn(JSON.stringify(toolCalls)) : 0)

export type Remembered = {
  /** What is told as it was said. */
  rows: MessageRow[]
  /** What was said before that. */
  summary?: Summary
  /** Whether it was summarized just now. */
  fresh: boolean
}

/**
 * What of a thread a model is told: all since the latest summary while that fits into so many tokens; else the newer half of
 * it, and the rest in short, by `summarize`. It begins with a message of the user's.
 */
export async function remembered(
  { summaries }: Thread,
  rows: MessageRow[],
  budget = BUDGET,
  summarize: (text: string) => Promise<string | undefined>,
): Promise<Remembered> {
  const latest = summaries.at(-1)
  const since = rows.filter(({ number }) => number > (latest?.upTo ?? 0))
  if (since.reduce((sum, row) => sum + tokensOf(row), 0) <= budget)
    return { rows: since, summary: latest, fresh: false }
  const from = newer(since, budget / 2)
  const old = since.slice(0, from)
  const content = old.length ? await summarize(toBeSummarized(latest, old, budget * 4)) : undefined
  if (!content) return { rows: since.slice(from), summary: latest, fresh: false }
  const summary = { content, upTo: old.at(-1)!.number, created: iso(now()) }
  return { rows: since.slice(from), summary, fresh: true }
}

/** From which on they fit; no call is taken apart from its answer by that. */
function newer(rows: MessageRow[], budget: number) {
  const users = rows.flatMap(({ role }, n) => (role === 'user' ? [n] : []))
  let left = budget
  let from = rows.length
  while (from > 0 && left - tokensOf(rows[from - 1]!) >= 0) left -= tokensOf(rows[--from]!)
  return users.find((n) => n >= from) ?? users.at(-1) ?? from
}

/** At most so many characters; of each message its beginning. */
function toBeSummarized(latest: Summary | undefined, rows: MessageRow[], most: number) {
  const each = Math.max(100, Math.floor(most / rows.length))
  const lines = rows
    .filter(({ role, content }) => role !== 'tool' && content)
    .map(({ role, content }) => `${role}: ${content.slice(0, each)}`)
  return [latest && `Before that, in short: ${latest.content}`, ...lines].filter(Boolean).join('\n')
}

const SUMMARIZE = `Sum up this conversation in at most 200 words, so that you can go on with it: what is wanted, what was
found out, what was decided. Names, numbers and ids stay as they are. Answer with the summary alone.`

/** Has a model sum up what was said. Where it can't, there is none. */
export async function summed({ client }: Source, model: string, text: string, signal: AbortSignal) {
  const messages = [
    { role: 'system' as const, content: SUMMARIZE },
    { role: 'user' as const, content: text },
  ]
  try {
    const { choices, usage } = await client.chat.completions.create({ model, messages, max_tokens: 1_000 }, { signal })
    const content = choices?.[0]?.message?.content
    return {
      content: typeof content === 'string' ? keepableText(content.slice(0, 8_000)) : undefined,
      counted: countedIn(usage),
    }
  } catch (error) {
    signal.throwIfAborted()
    return { content: undefined, error }
  }
}

export const asMessage = ({ role, content, name, toolCalls, toolCallId }: MessageRow): NewMessage => ({
  ...{ role, content },
  ...(name !== null && { name }),
  ...(toolCalls && { tool_calls: toolCalls }),
  ...(toolCallId !== null && { tool_call_id: toolCallId }),
})
