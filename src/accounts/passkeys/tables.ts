import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'
import { users } from '../tables'

/** Public keys of authenticators, by which users sign in. The private ones never leave the authenticator. */
export const passkeys = sqliteTable(
  'passkeys',
  {
    _id: text().primaryKey(),
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
    /** What the authenticator calls it (base64url). */
    credential: text().notNull().unique(),
    /** A COSE key (RFC 9052 §7), base64url. */
    publicKey: text('public_key').notNull(),
    /** How often it was used, as far as the authenticator counts that; else 0. */
    counter: integer().notNull(),
    /** The relying party: the host on whose pages it signs in. */
    host: text().notNull(),
    name: text().notNull(),
    transports: text({ mode: 'json' }).$type<string[]>().notNull(),
    backedUp: integer('backed_up', { mode: 'boolean' }).notNull(),
    created: timestamp().notNull(),
    used: timestamp(),
  },
  (table) => [index('passkeys_of_user').on(table.user)],
)

/** What an authenticator is asked to sign. Only hashes. */
export const passkeyChallenges = sqliteTable(
  'passkey_challenges',
  {
    hash: text().primaryKey(),
    purpose: text({ enum: ['registration', 'signin'] }).notNull(),
    /** Who registers; who signs in is not known yet. */
    user: text().references(() => users._id, { onDelete: 'cascade' }),
    /** The page that asked. */
    origin: text().notNull(),
    expires: timestamp().notNull(),
  },
  (table) => [index('passkey_challenges_of_user').on(table.user), index('passkey_challenges_by_end').on(table.expires)],
)
