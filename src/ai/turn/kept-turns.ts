import { desc, inArray, lte } from 'drizzle-orm'
import type { PublicCtx } from '../../accounts/context'
import { sha256 } from '../../core/crypto'
import type { Tx } from '../../storage/port'
import type { ToolCall } from '../shapes'
import { toolResults } from '../tables'
import type { Message } from './conversation'
import { readKept, toCallKey } from './model-messages'
import type { ProviderMessage } from './provider-message'

const MAX_KEPT_BYTES = 512 << 10 // of what is kept of a turn
const MAX_KEPT_TURNS = 20_000 // per tenant, with the results of tools; the oldest are forgotten
const MAX_LOOKUPS = 500 // messages

/**
 * Depends on the caller and the agent, so that nobody else gets it, and on what the user asked, because some servers number
 * their calls anew in each conversation.
 */
const toKeptId = ({ actor }: PublicCtx, integration: string | null, question: string, call: ToolCall) =>
  sha256(JSON.stringify(['said', actor?.user ?? null, integration, question, toCallKey(call)]))

/** Returns what the user said last before a message. */
const findQuestion = (messages: Message[], end = messages.length) =>
  messages.slice(0, end).findLast(({ role }) => role === 'user')?.content ?? ''

/** What a model said in a turn, where that is more than clients know, and its calls that the client has to run. */
type Continuation = { said: ProviderMessage[] | undefined; calls: ToolCall[]; messages: Message[]; created: string }

/**
 * Keeps, for a day, what a model said in a turn that has no thread, under each call that the client has to run. Most
 * clients send back only what they know of it.
 */
export async function keepSaid(
  tx: Tx,
  ctx: PublicCtx,
  integration: string | null,
  { said, calls, messages, created }: Continuation,
) {
  const question = findQuestion(messages)
  const ids = calls.map((call) => toKeptId(ctx, integration, question, call))
  const content = JSON.stringify(said ?? null)
  // What an equal call had before is not what the model said now.
  if (!said || Buffer.byteLength(content) > MAX_KEPT_BYTES)
    await tx.delete(toolResults).where(inArray(toolResults._id, ids))
  else for (const _id of ids) await keepRow(tx, { _id, content, created })
}

/** Stores a row, or replaces it. */
export const keepRow = (tx: Tx, { _id, content, created }: typeof toolResults.$inferInsert) =>
  tx
    .insert(toolResults)
    .values({ _id, content, created })
    .onConflictDoUpdate({ target: toolResults._id, set: { content, created } })

/** Returns the messages of a client, with what the model said in the place of what the client knows of it. */
export async function restoreOriginals(
  ctx: PublicCtx,
  integration: string | null,
  messages: Message[],
): Promise<Message[]> {
  const idByMessage = new Map(
    [...messages.entries()]
      .filter(([, { tool_calls: calls }]) => calls?.length)
      .slice(-MAX_LOOKUPS)
      .map(([at, message]) => [
        message,
        toKeptId(ctx, integration, findQuestion(messages, at), message.tool_calls![0]!),
      ]),
  )
  const kept = await readKept(ctx, [...idByMessage.values()])
  return messages.map((message) => {
    const said = kept.get(idByMessage.get(message) ?? '')
    return said ? { ...message, original: { messages: JSON.parse(said) as ProviderMessage[] } } : message
  })
}

/** Forgets the oldest of what is kept beyond its limit. */
export async function limitKept(tx: Tx) {
  const { created } = toolResults
  const oldest = await tx
    .select({ created })
    .from(toolResults)
    .orderBy(desc(created))
    .limit(1)
    .offset(MAX_KEPT_TURNS)
    .get()
  if (oldest) await tx.delete(toolResults).where(lte(created, oldest.created))
}
