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
const NEWEST = 500 // calls whose answers are looked for

/** What the model is told before anybody says something. @throws 400 for too much context */
export const instructions = ({ systemPrompt }: AiTarget, { rules, context }: Asked): Message[] =>
  asSystem(systemPrompt, rules?.length && rulesOf(rules), context && contextOf(context))

/** Those of the texts that are there, each in a message of its own. */
export const asSystem = (...texts: (string | 0 | null | undefined)[]): Message[] =>
  texts.flatMap((content) => (content ? [{ role: 'system', content }] : []))

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

/** @throws 400 where an answer is sent to a call that nobody has made before */
export function refuseLost(before: NewMessage[], sent: NewMessage[]) {
  const { taken } = matched([...before, ...sent])
  if (sent.some((message) => message.role === 'tool' && !taken.has(message)))
    invalid({ path: '/messages', message: 'The tool_call_id of a message answers no tool call of the conversation.' })
}

/**
 * Messages as models take them: each call is followed by its answer, be it the client's, one that was kept (`answers`), or
 * that there is none. Of calls that are too long ago to be told, the answers aren't either.
 */
export function spoken(messages: NewMessage[], answers: ReadonlyMap<string, string>): Message[] {
  const { answersTo } = matched(messages)
  return messages.flatMap((message): Message[] => {
    const { role, tool_calls: calls } = message
    if (role === 'tool') return []
    if (role !== 'assistant' || !calls?.length) return [plain(message)]
    const answered = answersTo.get(message)
    const results = calls.map((call): Message => {
      const content = answered?.get(call.id) ?? answers.get(nameOf(call)) ?? UNANSWERED
      return { role: 'tool', tool_call_id: call.id, content }
    })
    return [{ role, content: message.content || null, tool_calls: calls }, ...results]
  })
}

const UNANSWERED = 'This was not answered.'

function plain({ role, content, name }: NewMessage): Message {
  return { role: role as 'user', content: content ?? '', ...(name && { name }) }
}

/** Which messages answer the calls of which, and those that do: the first to each, until the same call is made once more. */
function matched(messages: NewMessage[]) {
  const answersTo = new Map<NewMessage, Map<string, string>>()
  const taken = new Set<NewMessage>()
  const open = new Map<string, NewMessage>()
  for (const message of messages) {
    const { role, content, tool_calls: calls = [], tool_call_id: id = '' } = message
    for (const call of calls) open.set(call.id, message)
    if (calls.length) answersTo.set(message, new Map())
    const asked = role === 'tool' ? open.get(id) : undefined
    if (!asked) continue
    open.delete(id)
    answersTo.get(asked)!.set(id, content ?? '')
    taken.add(message)
  }
  return { answersTo, taken }
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
  const names = new Map(open.slice(-NEWEST).map((call) => [keptAs(ctx, integration, call), nameOf(call)]))
  if (!names.size) return new Map<string, string>()
  const { _id } = toolResults
  const rows = await ctx.db
    .select()
    .from(toolResults)
    .where(and(inArray(_id, [...names.keys()])))
  return new Map(rows.map(({ _id, content }) => [names.get(_id)!, content]))
}
