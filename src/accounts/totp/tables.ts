import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { users } from '../tables'

/** Second factors. Their secrets are in the vault. */
export const totp = sqliteTable('totp', {
  user: text()
    .primaryKey()
    .references(() => users._id, { onDelete: 'cascade' }),
  /** Whether the user has proved by a code that they have the secret. Until then it has no effect. */
  confirmed: integer({ mode: 'boolean' }).notNull(),
  /** The latest time step whose code was used, so that no code can be used twice. */
  step: integer().notNull(),
})

/** Hashes of codes that replace the second factor, once each. */
export const recoveryCodes = sqliteTable(
  'recovery_codes',
  {
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
    hash: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.user, table.hash] })],
)
