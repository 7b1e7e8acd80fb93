import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** What was asked with an `Idempotency-Key`, and what was answered. */
export const idempotencyKeys = sqliteTable(
  'idempotency_keys',
  {
    /** A hash of the caller, the path and the key. */
    name: text().primaryKey(),
    /** Who does the work: the process, and a request of it. */
    attempt: text().notNull(),
    /** Tells whether it is the same request, but not what is in it; null until all of it is read. */
    fingerprint: text(),
    /** Encrypted; null until there is one, empty for one that is not kept. */
    answer: text(),
    /** The path at which what was created can be read, when it is one thing. */
    created: text(),
    /** Until when the work counts as being done, by the database's clock (ms). */
    busy: integer().notNull(),
    expires: integer().notNull(),
  },
  (table) => [index('idempotency_keys_by_end').on(table.expires)],
)
