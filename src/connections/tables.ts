import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { KindName } from './kinds/index'

/** Connections to other servers. Their secrets are in the vault. */
export const connections = sqliteTable('connections', {
  _id: text().primaryKey(),
  name: text().notNull(),
  kind: text().$type<KindName>().notNull(),
  labels: text({ mode: 'json' }).$type<string[]>().notNull(),
  metadata: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
  /** Grows with each change; part of the ETag. */
  version: integer().notNull(),
  created: timestamp().notNull(),
  updated: timestamp().notNull(),
})
