import { index, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'
import { users } from '../tables'

/** Whom a provider of sign-ins knows, and who they are here. */
export const identities = sqliteTable(
  'identities',
  {
    provider: text().notNull(),
    /** What the provider calls them, which it never changes. */
    subject: text().notNull(),
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
    /** The address that the provider told of them last. */
    email: text(),
    created: timestamp().notNull(),
    used: timestamp(),
  },
  (table) => [primaryKey({ columns: [table.provider, table.subject] }), index('identities_of_user').on(table.user)],
)
