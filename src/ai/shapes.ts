import type { TNull, TOptional, TProperties, TUnion } from '@sinclair/typebox'
import { type Static, t } from 'elysia'
import { listParameter } from '../core/query-lists'
import { flag, id, jsonObject, line, partialOf, strictObject, textMatching, time, withKeyPolicy } from '../core/shapes'
import { ai } from '../integrations/targets/ai'
import { growingListQuery, listQuery } from '../storage/pagination'

const maybe = t.Optional

const messageRoles = ['user', 'assistant', 'system', 'tool'] as const
export type MessageRole = (typeof messageRoles)[number]

const toolName = textMatching('^[a-zA-Z0-9_-]{1,64}$', 'Name a tool with 1 to 64 letters, digits, _ and -.')

/** A tool call in the format of OpenAI's API. `arguments` should be JSON text, but models may send anything. */
export const ToolCall = t.Object({
  id: t.String({ minLength: 1, maxLength: 200 }),
  type: t.Literal('function'),
  function: t.Object({ name: t.String({ minLength: 1, maxLength: 200 }), arguments: t.String() }),
})
export type ToolCall = Static<typeof ToolCall>

/** A summary of the first messages of a thread. */
export const ThreadSummary = t.Object({
  content: t.String(),
  upTo: t.Number({ description: 'number of messages, from the first, that the summary covers' }),
  created: time,
})
export type ThreadSummary = Static<typeof ThreadSummary>

const messageRole = t.Unsafe<MessageRole>(t.Union(messageRoles.map((name) => t.Literal(name))))

// `true` would have them removed: only what a shape describes is kept.
const anyMembers = { additionalProperties: t.Unknown() }

/** A part of a content. Only texts are read here; others, such as pictures, reach the model as they are. */
const ContentPart = t.Object({ type: t.String({ maxLength: 100 }), text: maybe(t.Nullable(t.String())) }, anyMembers)

/** A tool call that is sent back, with the members that only its provider knows. */
const SentToolCall = t.Object(
  { ...ToolCall.properties, function: t.Object(ToolCall.properties.function.properties, anyMembers) },
  anyMembers,
)

export const MessageInput = t.Object(
  {
    role: t.Unsafe<MessageRole | 'developer'>(
      t.Union(
        [...messageRoles, 'developer'].map((name) => t.Literal(name)),
        { description: '`developer` is the same as `system`' },
      ),
    ),
    content: maybe(
      t.Nullable(
        t.Union([t.String(), t.Array(ContentPart, { maxItems: 1_000 })], {
          description: 'optional beside tool_calls; a list of parts may have texts and, from a user, pictures',
        }),
      ),
    ),
    name: maybe(t.Nullable(line(200))),
    tool_calls: maybe(t.Nullable(t.Array(SentToolCall, { maxItems: 128 }))),
    tool_call_id: maybe(t.Nullable(t.String({ minLength: 1, maxLength: 200 }))),
  },
  anyMembers,
)
export type MessageInput = Static<typeof MessageInput>

export const ThreadMessage = t.Object(
  {
    role: messageRole,
    content: t.String(),
    name: maybe(t.String()),
    tool_calls: maybe(t.Array(SentToolCall)),
    tool_call_id: maybe(t.String()),
    incomplete: maybe(t.Literal(true, { description: 'the message is incomplete' })),
    timestamp: time,
  },
  { ...anyMembers, description: 'with the members of an assistant message that the client sent itself' },
)
export type ThreadMessage = Static<typeof ThreadMessage>

export const NewThread = t.Object({ integration: id, title: maybe(line(200)) })
export type NewThread = Static<typeof NewThread>

export const Thread = t.Object({
  _id: id,
  integration: t.String(),
  title: t.Nullable(t.String()),
  messages: t.Array(ThreadMessage, { description: 'only where a single thread is read; empty in lists' }),
  messageSummaries: t.Array(ThreadSummary),
  user: t.String(),
  workspace: t.Nullable(t.String()),
  created: time,
  updated: time,
})
export type Thread = Static<typeof Thread>

export const ThreadList = t.Object({
  ...growingListQuery,
  integration: listParameter('several values'),
  user: listParameter('only threads of these users; for admins'),
  workspace: listParameter('only threads created in these workspaces'),
  bypassAdmin: maybe(
    t.String({ description: 'only the caller’s own threads, also for admins', 'x-schema': { type: 'boolean' } }),
  ),
})

const nullableNumber = (minimum: number, maximum: number) => maybe(t.Nullable(t.Number({ minimum, maximum })))

export const ClientTool = t.Union([
  t.Object(
    { name: toolName, description: maybe(t.String({ maxLength: 4_000 })), schema: maybe(jsonObject) },
    { ...withKeyPolicy({ strict: true, ignored: ['parameters', 'strict'] }), 'x-name': 'with schema' },
  ),
  strictObject({
    type: t.Literal('function'),
    function: t.Object(
      { name: toolName, description: maybe(t.String({ maxLength: 4_000 })), parameters: maybe(jsonObject) },
      withKeyPolicy({ strict: true, ignored: ['strict'] }),
    ),
  }),
])
export type ClientTool = Static<typeof ClientTool>

export const ResponseFormat = t.Union([
  t.Object({ type: t.Literal('text') }),
  t.Object({ type: t.Literal('json_object') }),
  t.Object({
    type: t.Literal('json_schema'),
    json_schema: t.Object({
      name: toolName,
      description: maybe(t.String({ maxLength: 4_000 })),
      schema: maybe(jsonObject),
      strict: maybe(t.Nullable(t.Boolean())),
    }),
  }),
])

export const StopSequences = t.Union([
  t.String({ maxLength: 1_000 }),
  t.Array(t.String({ maxLength: 1_000 }), { maxItems: 4 }),
])

// Clients of other APIs send these keys, whose names are close to ours. They are ignored instead of refused.
export const ignoredForeignKeys = withKeyPolicy({ ignored: ['top_k', 'top_a', 'min_tokens', 'models', 'messageId'] })

/** The body of a completion. Its parameters take precedence over those of the integration. */
const completionProperties = {
  messages: t.Array(MessageInput, { minItems: 1, maxItems: 2_000 }),
  model: maybe(t.Nullable(line(200))),
  temperature: nullableNumber(0, 2),
  top_p: nullableNumber(0, 1),
  max_tokens: maybe(t.Nullable(t.Number({ multipleOf: 1, minimum: 1, maximum: 1_000_000 }))),
  frequency_penalty: nullableNumber(-2, 2),
  presence_penalty: nullableNumber(-2, 2),
  stop: maybe(t.Nullable(StopSequences)),
  response_format: maybe(t.Nullable(ResponseFormat)),
  context: maybe(
    t.Nullable({ ...jsonObject, description: 'additional context for the model, at most 16 KiB as JSON' }),
  ),
  stream: maybe(t.Nullable(t.Boolean())),
  clientTools: maybe(t.Nullable(t.Array(ClientTool, { maxItems: 128, description: 'tools that the client runs' }))),
  tools: maybe(t.Nullable(t.Array(ClientTool, { maxItems: 128, description: 'the same as `clientTools`' }))),
  rules: maybe(t.Nullable(t.Array(t.String({ maxLength: 4_000 }), { maxItems: 100 }))),
  queryParams: maybe(t.Nullable({ ...jsonObject, description: '`request.query` of lambdas that are called as tools' })),
}
export const CompletionRequest = t.Object(completionProperties, ignoredForeignKeys)
export type CompletionRequest = Static<typeof CompletionRequest>

/** The body of a completion of an agent. `threadId` names the thread. */
export const AgentChatRequest = t.Object(
  { ...completionProperties, threadId: maybe(t.Nullable(id)) },
  ignoredForeignKeys,
)

/** The query of a completion by GET, for the EventSource of browsers. */
export const AgentChatQuery = t.Object({
  messages: t.String({ description: 'a list of messages, as JSON' }),
  threadId: maybe(t.String()),
})

const { sourceId, ...target } = ai.shape.properties
const roleNames = maybe(t.Array(line(128, 1), { maxItems: 100 }))

export const NewAgent = t.Object({
  ...target,
  name: maybe(t.Nullable(line(200))),
  sourceId: maybe({
    ...sourceId,
    description: 'default: the oldest connection of the kind openai, or `echo` if there is none',
  }),
  active: maybe(t.Boolean({ description: 'default: true' })),
  roles: { ...roleNames, description: 'roles that may use the agent; if empty, every signed-in user' },
  workspaceRoles: { ...roleNames, description: 'roles in the active workspace that may use the agent' },
})
export type NewAgent = Static<typeof NewAgent>

type NullableProperties<Fields extends TProperties> = {
  [name in keyof Fields]: TOptional<TUnion<[Fields[name], TNull]>>
}
const toNullable = <Fields extends TProperties>(fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, maybe(t.Nullable(field))]),
  ) as unknown as NullableProperties<Fields>

/** Null removes a setting of the target. */
export const AgentChange = t.Object({ ...partialOf(NewAgent).properties, ...toNullable(target) })
export type AgentChange = Static<typeof AgentChange>

/** Only admins see the system prompt and the roles. */
export const Agent = t.Object({
  ...target,
  _id: id,
  name: t.Nullable(t.String()),
  description: t.String(),
  sourceId: t.String(),
  tools: t.Array(t.String()),
  active: t.Boolean(),
  roles: maybe(t.Array(t.String())),
  workspaceRoles: maybe(t.Array(t.String())),
  created: time,
  updated: time,
})
export type Agent = Static<typeof Agent>

export const AgentList = t.Object({ ...listQuery, active: flag })
