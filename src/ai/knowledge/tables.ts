import { blob, index, integer, real, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'

export const storeScopes = ['thread', 'user', 'workspace', 'tenant'] as const
export type StoreScope = (typeof storeScopes)[number]

/** Collections of files for an integration, each of a thread, a user, a workspace or the tenant. */
export const vectorStores = sqliteTable(
  'vector_stores',
  {
    /** The prefix of the store's words in the full-text index. */
    seq: integer().primaryKey(),
    _id: text().notNull().unique(),
    source: text().notNull(),
    integration: text().notNull(),
    scope: text({ enum: storeScopes }).notNull(),
    /** The thread, user or workspace; empty for the tenant. */
    subject: text().notNull(),
    /** The model and the dimension of its vectors; null while it has none. */
    model: text(),
    dimension: integer(),
    /** Incremented with each change of its files. */
    version: integer().notNull(),
    /** The number of chunks, including those of unfinished uploads. */
    chunks: integer().notNull(),
    expirationAfterDays: real('expiration_after_days'),
    created: timestamp().notNull(),
    expires: timestamp(),
  },
  (table) => [
    unique().on(table.integration, table.scope, table.subject, table.source),
    index('vector_stores_of_subject').on(table.subject),
    index('vector_stores_by_end').on(table.expires),
  ],
)

/** Uploaded files. They never change. */
export const knowledgeFiles = sqliteTable(
  'knowledge_files',
  {
    _id: text().primaryKey(),
    /** The store's id; no foreign key, because files are removed in batches after their store. */
    store: text().notNull(),
    name: text().notNull(),
    metadata: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
    user: text().notNull(),
    chunks: integer().notNull(),
    /** Whether it is complete. The search ignores files that are incomplete, or about to be removed. */
    ready: integer({ mode: 'boolean' }).notNull(),
    created: timestamp().notNull(),
  },
  (table) => [
    index('knowledge_files_of_store').on(table.store, table.ready, table._id),
    index('knowledge_files_unready').on(table.ready, table.created),
  ],
)

/** The parts of files that the search finds. */
export const knowledgeChunks = sqliteTable(
  'knowledge_chunks',
  {
    number: integer().primaryKey(),
    /** The file's id; no foreign key, as above. */
    file: text().notNull(),
    position: integer().notNull(),
    text: text().notNull(),
    /** Float32 numbers, little-endian; the vector has the length 1. */
    vector: blob({ mode: 'buffer' }),
  },
  (table) => [unique().on(table.file, table.position)],
)

/** The files whose words are indexed in `search_chunks`. */
export const searchFiles = sqliteTable('search_files', { file: text().primaryKey() })
