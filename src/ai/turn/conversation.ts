import type { MessageInput, MessageRole, ToolCall } from '../shapes'
import { isPlain, type ProviderMessage } from './provider-message'

/** A message of a conversation, as clients know it. */
export type Message = {
  role: MessageRole
  content?: string
  name?: string
  tool_calls?: ToolCall[]
  tool_call_id?: string
  /** What the model gets instead, where a message is more than this. */
  original?: OriginalMessages
}

/**
 * The messages that a model gets in the place of one: those that it said in a turn with members that only its provider
 * knows, or one with such members, or with other parts than text, that a client sent.
 */
export type OriginalMessages = { messages: ProviderMessage[]; fromClient?: true }

/** Returns a message that a client sent. `developer` is another word for `system`. */
export function toConversationMessage(input: MessageInput): Message {
  const { role, content, name, tool_calls, tool_call_id, ...others } = withoutNulls(input)
  const message = {
    role: role === 'developer' ? 'system' : role,
    ...(content !== undefined && { content: toContentText(content) }),
    ...(name && { name }),
    ...(tool_calls && { tool_calls: tool_calls.map(toPlainCall) }),
    ...(tool_call_id && { tool_call_id }),
  } satisfies Message
  const sent: ProviderMessage = {
    ...(role === 'assistant' && withoutClientMembers(others)),
    ...message,
    content: hasOtherParts({ content }) ? content : message.content || (tool_calls?.length ? null : ''),
    ...(tool_calls?.length && { tool_calls }),
  }
  return isPlain(sent) ? message : { ...message, original: { messages: [sent], fromClient: true } }
}

/** Some clients send `null` for absent parts of a message. */
const withoutNulls = (input: MessageInput) =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null)) as {
    [part in keyof MessageInput]: NonNullable<MessageInput[part]>
  }

type Content = NonNullable<MessageInput['content']>

const toContentText = (content: Content): string =>
  typeof content === 'string' ? content : content.map(({ text }) => text ?? '').join('')

/** The parts of a message that are not text, such as pictures. */
export const listOtherParts = (content: unknown): { type: string }[] =>
  Array.isArray(content) ? content.filter(({ type }) => !TEXT_TYPES.includes(type)) : []

export const hasOtherParts = ({ content }: { content?: unknown }) => listOtherParts(content).length > 0

const TEXT_TYPES = ['text', 'input_text', 'output_text', 'refusal']

const toPlainCall = ({ id, type, function: { name, arguments: text } }: ToolCall): ToolCall => ({
  ...{ id, type, function: { name, arguments: text } },
})

/** Members of messages as clients keep and show them, which no provider needs, and some refuse. */
const CLIENT_MEMBERS = new Set([
  ...[
    'id',
    '_id',
    'key',
    'timestamp',
    'createdAt',
    'created',
    'updatedAt',
    'incomplete',
    'status',
    'metadata',
    'parts',
  ],
  ...['parsed', 'annotations', 'refusal', 'audio', 'function_call', 'toolInvocations', 'experimental_attachments'],
  ...['citations', 'drafts', 'threadId', 'usage'],
])

const withoutClientMembers = (members: object) =>
  Object.fromEntries(Object.entries(members).filter(([key, value]) => !CLIENT_MEMBERS.has(key) && value !== null))
