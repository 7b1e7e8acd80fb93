import { index, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'
import { users } from '../tables'

/** Accounts of users at sign-in providers. */
export const identities = sqliteTable(
  'identities',
  {
    provider: text().notNull(),
    /** The id of the user at the provider, which never changes. */
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
