import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { LogLine } from './sandbox/protocol'

export const lambdas = sqliteTable(
  'lambdas',
  {
    _id: text().primaryKey(),
    name: text().notNull(),
    description: text().notNull(),
    /** The version of its code that runs, and how often anything of it was changed. */
    version: integer().notNull(),
    revision: integer().notNull(),
    /** Characters of its code, which a list shows whole. */
    size: integer().notNull(),
    timeoutMs: integer('timeout_ms').notNull(),
    memoryMb: integer('memory_mb').notNull(),
    /** The names; the values are in the vault. */
    env: text({ mode: 'json' }).$type<string[]>().notNull(),
    serviceRole: text('service_role'),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
  },
  (table) => [index('lambdas_by_time').on(table.created, table._id)],
)

export const versions = sqliteTable(
  'lambda_versions',
  {
    lambda: text()
      .notNull()
      .references(() => lambdas._id, { onDelete: 'cascade' }),
    version: integer().notNull(),
    /** As it was written, and what runs. */
    code: text().notNull(),
    js: text().notNull(),
    /** Who wrote it. */
    user: text(),
    created: timestamp().notNull(),
  },
  (table) => [primaryKey({ columns: [table.lambda, table.version] })],
)

/** What became of each run. It is written after the run, so its lambda may be gone. */
export const runs = sqliteTable(
  'lambda_runs',
  {
    _id: text().primaryKey(),
    lambda: text().notNull(),
    version: integer().notNull(),
    /** What it was run by: a webhook, an event … */
    trigger: text('cause').notNull(),
    status: integer().notNull(),
    error: text({ mode: 'json' }).$type<{ code: string; message: string; stack?: string }>(),
    started: timestamp().notNull(),
    duration: integer().notNull(),
    user: text(),
    logs: text({ mode: 'json' }).$type<LogLine[]>().notNull(),
  },
  (table) => [
    index('lambda_runs_by_time').on(table.lambda, table.started, table._id),
    index('lambda_runs_by_age').on(table.started),
  ],
)
