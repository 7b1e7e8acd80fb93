import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'

/** Encrypted texts, which the database alone does not reveal. */
export const sealed = sqliteTable(
  'sealed',
  {
    /** The purpose, the owner, and the name among the owner's secrets. */
    purpose: text().notNull(),
    owner: text().notNull(),
    name: text().notNull(),
    /** The number of the vault key. */
    key: integer().notNull(),
    text: text().notNull(),
    updated: timestamp().notNull(),
  },
  (table) => [primaryKey({ columns: [table.purpose, table.owner, table.name] }), index('sealed_by_key').on(table.key)],
)
