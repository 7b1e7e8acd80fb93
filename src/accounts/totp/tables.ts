import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { users } from '../tables'

/** Second factors. Their secrets are in the vault. */
export const totp = sqliteTable('totp', {
  user: text()
    .primaryKey()
    .references(() => users._id, { onDelete: 'cascade' }),
  /** Whether its user has shown that they can make codes of it; until then it counts for nothing. */
  confirmed: integer({ mode: 'boolean' }).notNull(),
  /** The latest step of time whose code was used: none is good twice. */
  step: integer().notNull(),
})

/** What signs in without the second factor, once each. */
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
