import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'

export const users = sqliteTable(
  'users',
  {
    _id: text().primaryKey(),
    username: text().notNull(),
    /** The normalized username, which is unique. */
    usernameKey: text('username_key').notNull().unique(),
    email: text(),
    emailKey: text('email_key').unique(),
    emailVerified: integer('email_verified', { mode: 'boolean' }).notNull(),
    /** The address that replaces `email` once it is verified. */
    pendingEmail: text('pending_email'),
    password: text(),
    roles: text({ mode: 'json' }).$type<string[]>().notNull(),
    name: text(),
    firstName: text('first_name'),
    lastName: text('last_name'),
    fullName: text('full_name'),
    profileImage: text('profile_image'),
    birthDate: text('birth_date'),
    phone: text(),
    metadata: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
    internalMetadata: text('internal_metadata', { mode: 'json' }).$type<Record<string, unknown>>().notNull(),
    /** Counts the changes that make older access tokens invalid. */
    version: integer().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
  },
  (table) => [index('users_by_time').on(table.created, table._id)],
)
export type UserRow = typeof users.$inferSelect

export const sessions = sqliteTable(
  'sessions',
  {
    _id: text().primaryKey(),
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
    kind: text({ enum: ['cookie', 'oauth'] }).notNull(),
    userAgent: text('user_agent').notNull(),
    address: text().notNull(),
    /** The active workspace; it has no effect after its deletion or while the user cannot access it. */
    workspace: text(),
    created: timestamp().notNull(),
    used: timestamp().notNull(),
    expires: timestamp().notNull(),
  },
  (table) => [index('sessions_of_user').on(table.user), index('sessions_by_expiry').on(table.expires)],
)

/**
 * The keys that continue a session: cookies and refresh tokens. Only hashes are stored, so a stolen database grants no
 * access.
 */
export const sessionKeys = sqliteTable(
  'session_keys',
  {
    hash: text().primaryKey(),
    session: text()
      .notNull()
      .references(() => sessions._id, { onDelete: 'cascade' }),
    /** The hash of the key that was exchanged for this one. */
    parent: text(),
    spent: timestamp(),
    created: timestamp().notNull(),
    expires: timestamp().notNull(),
  },
  (table) => [index('keys_of_session').on(table.session), index('keys_by_expiry').on(table.expires)],
)

export const apiTokens = sqliteTable(
  'api_tokens',
  {
    _id: text().primaryKey(),
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
    hash: text().notNull().unique(),
    prefix: text().notNull(),
    nickname: text().notNull(),
    scopes: text({ mode: 'json' }).$type<string[]>().notNull(),
    /** The workspace that the token is bound to. */
    workspace: text(),
    /** The active workspace of a token that is not bound. */
    activeWorkspace: text('active_workspace'),
    created: timestamp().notNull(),
    used: timestamp(),
    expires: timestamp(),
  },
  (table) => [index('tokens_of_user').on(table.user), index('tokens_of_workspace').on(table.workspace)],
)

export const signinFailures = sqliteTable('signin_failures', {
  subject: text().primaryKey(),
  count: integer().notNull(),
  since: timestamp().notNull(),
})

/** Tokens that can be used once, sent by mail or given out during a sign-in. Only hashes are stored. */
export const oneTimeTokens = sqliteTable(
  'one_time_tokens',
  {
    hash: text().primaryKey(),
    purpose: text({
      enum: ['verification', 'passwordReset', 'emailRevert', 'secondFactor', 'redirect', 'linking', 'signinLink'],
    }).notNull(),
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
    data: text({ mode: 'json' }).$type<Record<string, string>>().notNull(),
    expires: timestamp().notNull(),
    /** The hash of the code that may be entered in place of the token, with the normalized address of the mail. */
    code: text(),
    emailKey: text('email_key'),
    codeExpires: timestamp('code_expires'),
  },
  (table) => [index('one_time_tokens_of_user').on(table.user), index('one_time_tokens_by_end').on(table.expires)],
)
