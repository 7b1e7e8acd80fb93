import { inArray } from 'drizzle-orm'
import type OpenAI from 'openai'
import type { PublicCtx } from '../../accounts/context'
import { sha256 } from '../../core/crypto'
import { badRequest } from '../../core/problem'
import type { AiTarget } from '../../integrations/targets/ai'
import type { CompletionRequest, ToolCall } from '../shapes'
import { toolResults } from '../tables'
import { listOtherParts, type Message } from './conversation'
import { isObject } from './provider-members'
import type { ProviderMessage } from './provider-message'

export type ModelMessage = OpenAI.ChatCompletionMessageParam

const MAX_CONTEXT_BYTES = 16 << 10 // bytes
const MAX_STORED_RESULT_LOOKUPS = 500 // calls

/** Returns the system messages: the prompt, the rules and the context. @throws 400 when the context is too large */
export const toInstructionMessages = (
  { systemPrompt }: AiTarget,
  { rules, context }: CompletionRequest,
): ModelMessage[] =>
  toSystemMessages(systemPrompt, rules?.length && formatRules(rules), context && formatContext(context))

/** Returns a system message for each text that is not empty. */
export const toSystemMessages = (...texts: (string | 0 | null | undefined)[]): ModelMessage[] =>
  texts.flatMap((content) => (content ? [{ role: 'system', content }] : []))

const formatRules = (rules: string[]) =>
  `Keep to these rules:\n${rules.map((rule, n) => `${n + 1}. ${rule}`).join('\n')}`

function formatContext(context: Record<string, unknown>) {
  const text = `What you should know, as JSON:\n${JSON.stringify(context)}`
  if (Buffer.byteLength(text) <= MAX_CONTEXT_BYTES) return text
  return badRequest({ path: '/context', message: `The context may have at most ${MAX_CONTEXT_BYTES} bytes.` })
}

/** @throws 400 for messages that clients may not send here, or that are malformed */
export function assertValidMessages(messages: Message[], { allowSystemMessages }: AiTarget) {
  for (const [n, { role, content, tool_calls: calls, tool_call_id: id, original }] of messages.entries()) {
    const path = `/messages/${n}`
    const otherPart = role === 'user' ? undefined : original?.messages.flatMap((one) => listOtherParts(one.content))[0]
    if (otherPart)
      badRequest({
        path: `${path}/content`,
        message: `Only messages of the role user may have parts of the type ${otherPart.type}.`,
      })
    if (role === 'system' && !allowSystemMessages)
      badRequest({
        path: `${path}/role`,
        message: 'This integration does not accept system messages. Use `rules` or `context` instead.',
      })
    if (typeof content !== 'string' && !(role === 'assistant' && calls?.length))
      badRequest({ path: `${path}/content`, message: 'The content of a message must be a string.' })
    if (role === 'tool' && !id)
      badRequest({
        path: `${path}/tool_call_id`,
        message: 'tool_call_id is required: it names the tool call that this message answers.',
      })
    if (role !== 'assistant' && calls?.length)
      badRequest({ path: `${path}/tool_calls`, message: 'Only messages of the role assistant may have tool_calls.' })
  }
}

/** @throws 400 when a message answers a tool call that is not in the conversation */
export function assertToolCallsExist(before: Message[], sent: Message[]) {
  const { matched } = matchToolResults([...before, ...sent])
  if (sent.some((message) => message.role === 'tool' && !matched.has(message)))
    badRequest({
      path: '/messages',
      message: 'The tool_call_id of a message does not match any tool call of the conversation.',
    })
}

/**
 * Returns messages as models need them: each call is followed by its result, which is the client's, a stored one, or a
 * text that there is none. Results of calls that are not among the messages are left out.
 */
export function toModelMessages(messages: Message[], storedResults: ReadonlyMap<string, string>): ModelMessage[] {
  const { resultsByMessage } = matchToolResults(messages)
  return messages.flatMap((message): ModelMessage[] => {
    if (message.role === 'tool') return []
    const results = resultsByMessage.get(message)
    const toResult = (call: ToolCall): ModelMessage => {
      const content = results?.get(call.id) ?? storedResults.get(toCallKey(call)) ?? UNANSWERED_CALL_RESULT
      return { role: 'tool', tool_call_id: call.id, content }
    }
    const originals = message.original?.messages ?? [toPlainMessage(message)]
    return originals.flatMap((one) => [one as ModelMessage, ...(one.tool_calls ?? []).map(toResult)])
  })
}

const UNANSWERED_CALL_RESULT = 'This was not answered.'

const toPlainMessage = ({ role, content, name, tool_calls: calls }: Message): ProviderMessage =>
  role === 'assistant' && calls?.length
    ? { role, content: content || null, tool_calls: calls }
    : { role, content: content ?? '', ...(name && { name }) }

/** Matches results to calls. The first result of a call counts, until a call with the same id follows. */
function matchToolResults(messages: Message[]) {
  const resultsByMessage = new Map<Message, Map<string, string>>()
  const matched = new Set<Message>()
  const openCalls = new Map<string, Message>()
  for (const message of messages) {
    const { role, content, tool_calls: calls = [], tool_call_id: id = '' } = message
    for (const call of calls) openCalls.set(call.id, message)
    if (calls.length) resultsByMessage.set(message, new Map())
    const callingMessage = role === 'tool' ? openCalls.get(id) : undefined
    if (!callingMessage) continue
    openCalls.delete(id)
    resultsByMessage.get(callingMessage)!.set(id, content ?? '')
    matched.add(message)
  }
  return { resultsByMessage, matched }
}

/** Identifies a call by more than its id, because some servers reuse ids. Clients may write the arguments anew. */
export const toCallKey = ({ id, function: { name, arguments: text } }: ToolCall) =>
  JSON.stringify([id, name, toCanonicalJson(text)])

function toCanonicalJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), (_, value) => (isObject(value) ? sortKeys(value) : value))
  } catch {
    return text
  }
}

const sortKeys = (value: object) => Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))

/** Returns the id of the stored result of a call. It depends on the user, so no one else can read the result. */
export const toStoredResultId = ({ actor }: PublicCtx, integration: string | null, call: ToolCall) =>
  sha256(JSON.stringify([actor?.user ?? null, integration, toCallKey(call)]))

/** Returns the stored results of server tools for the calls that the client did not answer, by the key of the call. */
export async function loadStoredResults(ctx: PublicCtx, integration: string | null, messages: Message[]) {
  const answeredIds = new Set(messages.map(({ tool_call_id: id }) => id))
  const openCalls = messages.flatMap(listCalls).filter(({ id }) => !answeredIds.has(id))
  const keysById = new Map(
    openCalls
      .slice(-MAX_STORED_RESULT_LOOKUPS)
      .map((call) => [toStoredResultId(ctx, integration, call), toCallKey(call)]),
  )
  const contents = await readKept(ctx, [...keysById.keys()])
  return new Map([...contents].map(([_id, content]) => [keysById.get(_id)!, content]))
}

/** Returns the calls of a message, and those of the turn that it stands for. */
const listCalls = ({ tool_calls: calls = [], original }: Message): ToolCall[] =>
  original ? original.messages.flatMap(({ tool_calls = [] }) => tool_calls) : calls

/** Returns what is kept of turns under these ids. */
export async function readKept({ db }: PublicCtx, ids: string[]): Promise<Map<string, string>> {
  if (!ids.length) return new Map()
  const { _id } = toolResults
  const rows = await db.select().from(toolResults).where(inArray(_id, ids))
  return new Map(rows.map(({ _id, content }) => [_id, content]))
}
