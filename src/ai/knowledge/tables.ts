import { blob, index, integer, real, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'

export const storeScopes = ['thread', 'user', 'workspace', 'tenant'] as const
export type StoreScope = (typeof storeScopes)[number]

/** Where somebody's files are kept for an integration: of a thread, a user, a workspace, or of all. */
export const vectorStores = sqliteTable(
  'vector_stores',
  {
    /** Stands for the store before each of its words. */
    seq: integer().primaryKey(),
    _id: text().notNull().unique(),
    source: text().notNull(),
    integration: text().notNull(),
    scope: text({ enum: storeScopes }).notNull(),
    /** The thread, user or workspace; empty for the tenant. */
    subject: text().notNull(),
    /** What its vectors were made by, and how many numbers each has; null without any. */
    model: text(),
    dimension: integer(),
    /** Another one for each change of its files. */
    version: integer().notNull(),
    /** How many it has, also of files that are not whole yet. */
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

/** What was uploaded at once. It never changes. */
export const knowledgeFiles = sqliteTable(
  'knowledge_files',
  {
    _id: text().primaryKey(),
    /** The store's id; no reference: what has lost its store is swept up a slice at a time. */
    store: text().notNull(),
    name: text().notNull(),
    metadata: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
    user: text().notNull(),
    chunks: integer().notNull(),
    /** Whether all of it is there. Until then, and when it is to go, nobody finds it. */
    ready: integer({ mode: 'boolean' }).notNull(),
    created: timestamp().notNull(),
  },
  (table) => [
    index('knowledge_files_of_store').on(table.store, table.ready, table._id),
    index('knowledge_files_unready').on(table.ready, table.created),
  ],
)

/** A piece of a file. */
export const knowledgeChunks = sqliteTable(
  'knowledge_chunks',
  {
    number: integer().primaryKey(),
    /** The file's id; no reference, as above. */
    file: text().notNull(),
    position: integer().notNull(),
    text: text().notNull(),
    /** Float32, little-endian, of length 1. */
    vector: blob({ mode: 'buffer' }),
  },
  (table) => [unique().on(table.file, table.position)],
)

/** Of which files the words are kept in `search_chunks`. */
export const searchFiles = sqliteTable('search_files', { file: text().primaryKey() })
