import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { MessageRole, ThreadSummary, ToolCall } from './shapes'

/** Conversations, each of one user with one integration. */
export const threads = sqliteTable(
  'threads',
  {
    _id: text().primaryKey(),
    integration: text().notNull(),
    title: text(),
    /** What messages before its newest were about, for models that can't be told all of them. */
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

export const messages = sqliteTable(
  'thread_messages',
  {
    thread: text()
      .notNull()
      .references(() => threads._id, { onDelete: 'cascade' }),
    /** Its place, from 1. */
    number: integer().notNull(),
    role: text().$type<MessageRole>().notNull(),
    content: text().notNull(),
    name: text(),
    toolCalls: text('tool_calls', { mode: 'json' }).$type<ToolCall[]>(),
    toolCallId: text('tool_call_id'),
    /** Whether a tool of the server's said it, which clients don't know of. */
    ours: integer({ mode: 'boolean' }).notNull(),
    /** Whether it broke off: by whoever asked, or the model's server. */
    incomplete: integer({ mode: 'boolean' }).notNull(),
    created: timestamp().notNull(),
  },
  ({ thread, number }) => [primaryKey({ columns: [thread, number] })],
)

/**
 * What tools of the server's answered in a turn that waits for its client, which is not asked to send it back. Its id is
 * made of who asked and the call.
 */
export const toolResults = sqliteTable(
  'tool_results',
  { _id: text().primaryKey(), content: text().notNull(), created: timestamp().notNull() },
  ({ created }) => [index('tool_results_by_age').on(created)],
)

/** What each completion took, and each embedding, also of those that failed. */
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
    /** Millionths of the currency that the tenant's prices are in. */
    cost: integer().notNull(),
    /** Whether the tokens were not counted by the model's server. */
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
 * What all work of models took in a day or a month, of each for whom there may be a budget, so that nobody adds up rows for
 * it. Its id is made of the time, the scope and whose it is: `2026-11-30 user <id>`, `2026-11 tenant `.
 */
export const spent = sqliteTable('ai_spent', {
  _id: text().primaryKey(),
  tokens: integer().notNull(),
  /** Millionths, as in the rows. */
  cost: integer().notNull(),
})
