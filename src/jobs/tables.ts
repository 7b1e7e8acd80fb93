import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Which process may do a kind of work of the tenant's, one at a time. */
export const leases = sqliteTable('leases', {
  name: text().primaryKey(),
  /** Who works, for people who look; nothing once it was released. */
  holder: text(),
  /** How often it was taken. It only ever grows, so whoever has an older one is known to be late. */
  token: integer().notNull(),
  /** Until when nobody else gets it: ms since 1970, as the database's clock has it. */
  expires: integer().notNull(),
})
