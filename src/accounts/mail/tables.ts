import { index, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'
import { users } from '../tables'

/** What was written to people, or is to be. */
export const mails = sqliteTable(
  'mails',
  {
    _id: text().primaryKey(),
    recipient: text().notNull(),
    /** The address as it is compared. */
    recipientKey: text('recipient_key').notNull(),
    template: text({ enum: ['verification', 'passwordReset', 'invitation', 'newDevice', 'emailChanged'] }).notNull(),
    /** Who gets it, when that is a user. */
    user: text(),
    /** What the template speaks of; nothing secret. */
    data: text({ mode: 'json' }).$type<Record<string, string>>().notNull(),
    state: text({ enum: ['waiting', 'sent', 'kept', 'failed'] }).notNull(),
    /** What it says, where it is kept because no mail is sent: it may hold a secret. */
    subject: text(),
    text: text(),
    html: text(),
    /** What became of the latest attempt. */
    error: text(),
    created: timestamp().notNull(),
    sent: timestamp(),
  },
  (table) => [
    index('mails_by_time').on(table.created, table._id),
    index('mails_to').on(table.recipientKey, table.sent),
  ],
)

/** Verified addresses that users gave up: whoever reads mail there can take the change back until it expires. */
export const emailChanges = sqliteTable(
  'email_changes',
  {
    _id: text().primaryKey(),
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
    /** The address before the change. */
    email: text().notNull(),
    emailKey: text('email_key').notNull(),
    created: timestamp().notNull(),
    expires: timestamp().notNull(),
  },
  (table) => [
    index('email_changes_of_user').on(table.user),
    index('email_changes_by_key').on(table.emailKey),
    index('email_changes_by_end').on(table.expires),
  ],
)

/** From where users signed in before. */
export const devices = sqliteTable(
  'devices',
  {
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
    /** A hash of the browser and the network. */
    device: text().notNull(),
    seen: timestamp().notNull(),
  },
  (table) => [primaryKey({ columns: [table.user, table.device] }), index('devices_by_time').on(table.seen)],
)
