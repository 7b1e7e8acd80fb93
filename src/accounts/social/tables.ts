import { index, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'
import { users } from '../tables'

/** Identities at sign-in providers, and the users that they belong to. */
export const identities = sqliteTable(
  'identities',
  {
    provider: text().notNull(),
    /** The stable id of the person at the provider. */
    subject: text().notNull(),
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
    /** The address that the provider reported last. */
    email: text(),
    created: timestamp().notNull(),
    used: timestamp(),
  },
  (table) => [primaryKey({ columns: [table.provider, table.subject] }), index('identities_of_user').on(table.user)],
)
