import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { MessageRole, ThreadSummary, ToolCall } from './shapes'
import type { OriginalMessages } from './turn/conversation'

/** Conversations, each of one user with one integration. */
export const threads = sqliteTable(
  'threads',
  {
    _id: text().primaryKey(),
    integration: text().notNull(),
    title: text(),
    /** Summaries of its older messages, for when not all of them fit into the model's context. */
    summaries: text({ mode: 'json' }).$type<ThreadSummary[]>().notNull(),
    user: text().notNull(),
    workspace: text(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
  },
  ({ user, workspace, created, _id }) => [
    index('threads_by_time').on(created, _id),
    index('threads_of_user').on(user, created, _id),
    index('threads_of_workspace').on(workspace, created, _id),
  ],
)

/** The messages of threads, in the order of their numbers. */
export const messages = sqliteTable(
  'thread_messages',
  {
    thread: text()
      .notNull()
      .references(() => threads._id, { onDelete: 'cascade' }),
    /** The position in the thread, from 1. */
    number: integer().notNull(),
    role: text().$type<MessageRole>().notNull(),
    content: text().notNull(),
    name: text(),
    toolCalls: text('tool_calls', { mode: 'json' }).$type<ToolCall[]>(),
    toolCallId: text('tool_call_id'),
    /** Whether it is the result of a server tool, which clients do not see. */
    ours: integer({ mode: 'boolean' }).notNull(),
    /** Whether the message broke off, because of the client or of the source. */
    incomplete: integer({ mode: 'boolean' }).notNull(),
    created: timestamp().notNull(),
    /** What the model gets in its place, if that has more than clients know. */
    original: text({ mode: 'json' }).$type<OriginalMessages>(),
  },
  ({ thread, number }) => [primaryKey({ columns: [thread, number] })],
)

/**
 * What the client of a turn without a thread need not send back when it has run its tools: the results of server tools,
 * and what only the provider knows. The id is a hash of the user, the integration and the call.
 */
export const toolResults = sqliteTable(
  'tool_results',
  { _id: text().primaryKey(), content: text().notNull(), created: timestamp().notNull() },
  ({ created }) => [index('tool_results_by_age').on(created)],
)

/** The usage of each completion and each embedding, including failed ones. */
export const usage = sqliteTable(
  'ai_usage',
  {
    _id: text().primaryKey(),
    created: timestamp().notNull(),
    integration: text(),
    /** The connection, or `echo`. */
    source: text().notNull(),
    model: text().notNull(),
    user: text(),
    workspace: text(),
    thread: text(),
    promptTokens: integer('prompt_tokens').notNull(),
    completionTokens: integer('completion_tokens').notNull(),
    /** In millionths of the currency of the tenant's prices. */
    cost: integer().notNull(),
    /** Whether the tokens were estimated, because the source did not report them. */
    estimated: integer({ mode: 'boolean' }).notNull(),
    status: text().$type<'completed' | 'failed' | 'aborted'>().notNull(),
    durationMs: integer('duration_ms').notNull(),
    kind: text().$type<'completion' | 'embedding'>().notNull(),
  },
  ({ created, _id, user, workspace }) => [
    index('ai_usage_by_time').on(created, _id),
    index('ai_usage_of_user').on(user, created),
    index('ai_usage_of_workspace').on(workspace, created),
  ],
)

/**
 * The usage of a day or a month, per tenant, user and workspace, so that budgets are checked without summing up `usage`.
 * The id consists of the time, the scope and the id of the user or workspace: `2026-11-30 user <id>`, `2026-11 tenant `.
 */
export const spent = sqliteTable('ai_spent', {
  _id: text().primaryKey(),
  tokens: integer().notNull(),
  /** In millionths of the currency, as in `usage`. */
  cost: integer().notNull(),
})
