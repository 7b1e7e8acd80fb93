import { integer, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { time } from '../storage/columns'
import type { Definition } from './shapes'

export const blueprints = sqliteTable('blueprints', {
  key: text().primaryKey(),
  _id: text().notNull().unique(),
  name: text().notNull(),
  description: text().notNull(),
  definition: text({ mode: 'json' }).$type<Definition>().notNull(),
  version: integer().notNull(),
  created: time().notNull(),
  updated: time().notNull(),
})

/** A field's number stands for it in the index: rows stay small, and a field can be renamed without touching them. */
export const fields = sqliteTable(
  'fields',
  {
    number: integer().primaryKey(),
    blueprint: text()
      .notNull()
      .references(() => blueprints.key, { onDelete: 'cascade' }),
    key: text().notNull(),
  },
  (table) => [unique().on(table.blueprint, table.key)],
)
