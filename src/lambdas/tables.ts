import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { LogLine } from './sandbox/protocol'

/** Lambdas, without their code. */
export const lambdas = sqliteTable('lambdas', {
  _id: text().primaryKey(),
  name: text().notNull(),
  description: text().notNull(),
  /** The current version of its code, and a revision that grows with every change. */
  version: integer().notNull(),
  revision: integer().notNull(),
  /** The length of its code in characters. */
  size: integer().notNull(),
  timeoutMs: integer('timeout_ms').notNull(),
  memoryMb: integer('memory_mb').notNull(),
  /** The names of its variables; the values are in the vault. */
  env: text({ mode: 'json' }).$type<string[]>().notNull(),
  serviceRole: text('service_role'),
  created: timestamp().notNull(),
  updated: timestamp().notNull(),
})

/** The code of lambdas, by version. */
export const versions = sqliteTable(
  'lambda_versions',
  {
    lambda: text()
      .notNull()
      .references(() => lambdas._id, { onDelete: 'cascade' }),
    version: integer().notNull(),
    /** The source code, and the JavaScript that runs. */
    code: text().notNull(),
    js: text().notNull(),
    /** The id of the author. */
    user: text(),
    created: timestamp().notNull(),
  },
  (table) => [primaryKey({ columns: [table.lambda, table.version] })],
)

/** The log of runs. A row is written after its run, so its lambda may have been removed. */
export const runs = sqliteTable(
  'lambda_runs',
  {
    _id: text().primaryKey(),
    lambda: text().notNull(),
    version: integer().notNull(),
    /** The trigger: `execute`, `webhook`, `event` … */
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
