import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'

/** Texts that nobody can read who has only the database. */
export const sealed = sqliteTable(
  'sealed',
  {
    /** What for, and whose, and which of theirs. */
    purpose: text().notNull(),
    owner: text().notNull(),
    name: text().notNull(),
    /** The number of the key. */
    key: integer().notNull(),
    text: text().notNull(),
    updated: timestamp().notNull(),
  },
  (table) => [primaryKey({ columns: [table.purpose, table.owner, table.name] }), index('sealed_by_key').on(table.key)],
)
