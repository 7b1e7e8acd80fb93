import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'
import { users } from '../tables'

/** Public keys of authenticators by which users sign in. The private keys never leave the authenticator. */
export const passkeys = sqliteTable(
  'passkeys',
  {
    _id: text().primaryKey(),
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
    /** The credential id of the authenticator (base64url). */
    credential: text().notNull().unique(),
    /** A COSE key (RFC 9052 §7), base64url. */
    publicKey: text('public_key').notNull(),
    /** How often the passkey was used if the authenticator counts that, otherwise 0. */
    counter: integer().notNull(),
    /** The relying party: the host on whose pages the passkey signs users in. */
    host: text().notNull(),
    name: text().notNull(),
    transports: text({ mode: 'json' }).$type<string[]>().notNull(),
    backedUp: integer('backed_up', { mode: 'boolean' }).notNull(),
    created: timestamp().notNull(),
    used: timestamp(),
  },
  (table) => [index('passkeys_of_user').on(table.user)],
)

/** Challenges for authenticators to sign. Only hashes are stored. */
export const passkeyChallenges = sqliteTable(
  'passkey_challenges',
  {
    hash: text().primaryKey(),
    purpose: text({ enum: ['registration', 'signin'] }).notNull(),
    /** The user who registers a passkey; null for a sign-in, whose user is not known yet. */
    user: text().references(() => users._id, { onDelete: 'cascade' }),
    /** The origin of the page that requested the challenge. */
    origin: text().notNull(),
    expires: timestamp().notNull(),
  },
  (table) => [index('passkey_challenges_of_user').on(table.user), index('passkey_challenges_by_end').on(table.expires)],
)
