import { desc, lte } from 'drizzle-orm'
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

/** Depends on the caller and the agent, so that nobody else gets it. */
const toKeptId = ({ actor }: PublicCtx, integration: string | null, call: ToolCall) =>
  sha256(JSON.stringify(['said', actor?.user ?? null, integration, toCallKey(call)]))

/**
 * Returns the rows that keep, for a day, what a model said in a turn that has no thread, under each call that the client
 * has to run. Most clients send back only what they know of it.
 */
export function toKeptRows(
  ctx: PublicCtx,
  integration: string | null,
  { said, calls, created }: { said: ProviderMessage[]; calls: ToolCall[]; created: string },
) {
  const content = JSON.stringify(said)
  if (Buffer.byteLength(content) > MAX_KEPT_BYTES) return []
  return calls.map((call) => ({ _id: toKeptId(ctx, integration, call), content, created }))
}

/** Returns the messages of a client, with what the model said in the place of what the client knows of it. */
export async function restoreOriginals(
  ctx: PublicCtx,
  integration: string | null,
  messages: Message[],
): Promise<Message[]> {
  const idByMessage = new Map(
    messages
      .filter(({ tool_calls: calls }) => calls?.length)
      .slice(-MAX_LOOKUPS)
      .map((message) => [message, toKeptId(ctx, integration, message.tool_calls![0]!)]),
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
