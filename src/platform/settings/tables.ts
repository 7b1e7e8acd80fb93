import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'

/** A tenant's configurations by key: `app-configuration`, `auth-configuration`, `workspace-configuration`, … */
export const configurations = sqliteTable('configurations', {
  _id: text().primaryKey(),
  key: text().notNull().unique(),
  /** Whether anyone may read it. */
  public: integer({ mode: 'boolean' }).notNull(),
  kind: text().notNull(),
  description: text().notNull(),
  /** The number of its state, for ETags. */
  version: integer().notNull().default(1),
  metadata: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
  created: timestamp().notNull(),
  updated: timestamp().notNull(),
})
