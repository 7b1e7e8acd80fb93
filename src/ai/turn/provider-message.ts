import type { ToolCall } from '../shapes'
import { isObject, type Members } from './provider-members'
import type { Reply } from './reply'

/** An assistant message as its provider said it, with members that only the provider knows. */
export type ProviderMessage = { role: string; content: unknown; tool_calls?: (ToolCall & Members)[] } & Members

/** Returns a reply as its provider needs it back. `calls` are its calls with the ids under which they are answered. */
export function toProviderMessage({ content, own }: Reply, calls: ToolCall[]): ProviderMessage {
  const toolCalls = calls.map((call, n) => withMembers(call, own.calls[n] ?? {}))
  return {
    content: content || (calls.length ? null : ''),
    ...own.message,
    role: 'assistant',
    ...(calls.length && { tool_calls: toolCalls }),
  }
}

const withMembers = (call: ToolCall, { function: functionMembers, ...members }: Members) => ({
  ...members,
  ...call,
  function: { ...(isObject(functionMembers) && functionMembers), ...call.function },
})

const PLAIN_MEMBERS = [
  ['role', 'content', 'name', 'tool_calls', 'tool_call_id'],
  ['id', 'type', 'function'],
  ['name', 'arguments'],
] as const

const hasOnly = (value: object, keys: readonly string[]) => Object.keys(value).every((key) => keys.includes(key))

/** Whether a message has nothing that this server does not know. */
export const isPlain = ({ content, tool_calls: calls = [], ...message }: ProviderMessage): boolean =>
  (content === null || content === undefined || typeof content === 'string') &&
  hasOnly(message, PLAIN_MEMBERS[0]) &&
  calls.every((call) => hasOnly(call, PLAIN_MEMBERS[1]) && hasOnly(call.function, PLAIN_MEMBERS[2]))

/** Returns the members of a message that this server does not know, and its calls with theirs. */
export const toUnknownMembers = ({
  role: _,
  content: __,
  name: ___,
  tool_call_id: ____,
  ...members
}: ProviderMessage) => members
