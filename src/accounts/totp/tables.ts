import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { users } from '../tables'

/** Second factors. Their secrets are in the vault. */
export const totp = sqliteTable('totp', {
  user: text()
    .primaryKey()
    .references(() => users._id, { onDelete: 'cascade' }),
  /** Whether the user has confirmed the secret with a code; until then it has no effect. */
  confirmed: integer({ mode: 'boolean' }).notNull(),
  /** The latest time step whose code was used, so that no code is valid twice. */
  step: integer().notNull(),
})

/** Codes that replace the second factor, each of them once. */
export const recoveryCodes = sqliteTable(
  'recovery_codes',
  {
    hash: text().primaryKey(),
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
  },
  (table) => [index('recovery_codes_of_user').on(table.user)],
)
