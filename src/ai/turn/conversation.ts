import { and, inArray } from 'drizzle-orm'
import type OpenAI from 'openai'
import type { OpenCtx } from '../../accounts/guard'
import { invalid } from '../../core/problem'
import { hashed } from '../../core/secret'
import type { AiTarget } from '../../plugins/integrations/targets/ai'
import type { Asked, NewMessage, ToolCall } from '../shapes'
import { toolResults } from '../tables'

export type Message = OpenAI.ChatCompletionMessageParam

const CONTEXT = 16 << 10 // bytes

/** What the model is told before anybody says something. @throws 400 for too much context */
export function instructions({ systemPrompt }: AiTarget, { rules, context }: Asked, ...more: string[]): Message[] {
  const parts = [systemPrompt, rules?.length && rulesOf(rules), context && contextOf(context), ...more]
  return parts.flatMap((content) => (content ? [{ role: 'system' as const, content }] : []))
}

const rulesOf = (rules: string[]) => `Keep to these rules:\n${rules.map((rule, n) => `${n + 1}. ${rule}`).join('\n')}`

function contextOf(context: Record<string, unknown>) {
  const text = `What you should know, as JSON:\n${JSON.stringify(context)}`
  if (Buffer.byteLength(text) <= CONTEXT) return text
  return invalid({ path: '/context', message: `At most ${CONTEXT} bytes of context are taken.` })
}

/** @throws 400 for what clients may not say here, or what no model would understand */
export function refuseUnfit(messages: NewMessage[], { allowSystemMessages }: AiTarget) {
  for (const [n, { role, content, tool_calls: calls, tool_call_id: id }] of messages.entries()) {
    const path = `/messages/${n}`
    if (role === 'system' && !allowSystemMessages)
      invalid({
        path: `${path}/role`,
        message: 'This integration takes no system messages. Give `rules` or `context`.',
      })
    if (typeof content !== 'string' && !(role === 'assistant' && calls?.length))
      invalid({ path: `${path}/content`, message: 'The content of a message is a text.' })
    if (role === 'tool' && !id) invalid({ path: `${path}/tool_call_id`, message: 'Say which call this answers.' })
    if (role !== 'assistant' && calls?.length)
      invalid({ path: `${path}/tool_calls`, message: 'Only the assistant calls tools.' })
  }
}

/**
 * Messages as models take them: each call is followed by its answer, be it the client's, one that was kept (`answers`), or
 * that there is none. @throws 400 for answers to calls that there are not
 */
export function spoken(messages: NewMessage[], answers: ReadonlyMap<string, string>): Message[] {
  const taken = new Set<NewMessage>()
  const all = messages.flatMap((message, n): Message[] => {
    const { role, tool_calls: calls } = message
    if (role === 'tool') return []
    if (role !== 'assistant' || !calls?.length) return [plain(message)]
    const answered = answersTo(calls, messages.slice(n + 1))
    for (const one of answered.values()) taken.add(one)
    const results = calls.map((call): Message => {
      const content = answered.get(call.id)?.content ?? answers.get(nameOf(call)) ?? UNANSWERED
      return { role: 'tool', tool_call_id: call.id, content }
    })
    return [{ role, content: message.content || null, tool_calls: calls }, ...results]
  })
  const lost = messages.findIndex((message) => message.role === 'tool' && !taken.has(message))
  if (lost >= 0) invalid({ path: '/messages', message: 'A message of a tool answers a call that nobody has made.' })
  return all
}

const UNANSWERED = 'This was not answered.'

function plain({ role, content, name }: NewMessage): Message {
  return { role: role as 'user', content: content ?? '', ...(name && { name }) }
}

/** Until the same call is made once more. */
function answersTo(calls: ToolCall[], after: NewMessage[]) {
  const found = new Map<string, NewMessage>()
  for (const message of after) {
    const { role, tool_call_id: id = '', tool_calls: others } = message
    if (others?.some((other) => calls.some((call) => call.id === other.id))) break
    if (role === 'tool' && calls.some((call) => call.id === id) && !found.has(id)) found.set(id, message)
  }
  return found
}

/** A call, whatever the id: some servers give the same one again and again. */
const nameOf = (call: ToolCall) => JSON.stringify([call.id, call.function.name, call.function.arguments])

/** Under which id the result of a call is kept for whoever goes on: nobody else has the same. */
export const keptAs = ({ actor }: OpenCtx, integration: string | null, call: ToolCall) =>
  hashed(JSON.stringify([actor?.user ?? null, integration, nameOf(call)]))

/** What tools here have answered to calls of a turn that its client goes on with. */
export async function keptAnswers(ctx: OpenCtx, integration: string | null, messages: NewMessage[]) {
  const answered = new Set(messages.map(({ tool_call_id: id }) => id))
  const open = messages.flatMap(({ tool_calls: calls = [] }) => calls.filter(({ id }) => !answered.has(id)))
  const names = new Map(open.map((call) => [keptAs(ctx, integration, call), nameOf(call)]))
  if (!names.size) return new Map<string, string>()
  const { _id } = toolResults
  const rows = await ctx.db
    .select()
    .from(toolResults)
    .where(and(inArray(_id, [...names.keys()].slice(0, 500))))
  return new Map(rows.map(({ _id, content }) => [names.get(_id)!, content]))
}
