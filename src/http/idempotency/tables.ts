import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Requests with an `Idempotency-Key`, and their answers. */
export const idempotencyKeys = sqliteTable(
  'idempotency_keys',
  {
    /** A hash of the caller, the path and the key. */
    name: text().primaryKey(),
    /** The process and the request that do the work. */
    attempt: text().notNull(),
    /** Distinguishes requests without revealing their content; null until the whole body was read. */
    fingerprint: text(),
    /** The encrypted answer; null until there is one, empty for one that is not stored. */
    answer: text(),
    /** The path at which the created resource can be read, if there is exactly one. */
    created: text(),
    /** Until when the work counts as running, by the clock of the database (ms). */
    busy: integer().notNull(),
    expires: integer().notNull(),
  },
  (table) => [index('idempotency_keys_by_end').on(table.expires)],
)
