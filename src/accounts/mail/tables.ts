import { index, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'
import { users } from '../tables'

/** Mails that were sent or are queued. */
export const mails = sqliteTable(
  'mails',
  {
    _id: text().primaryKey(),
    recipient: text().notNull(),
    /** The address in the form in which it is compared. */
    recipientKey: text('recipient_key').notNull(),
    template: text({ enum: ['verification', 'passwordReset', 'invitation', 'newDevice', 'emailChanged'] }).notNull(),
    /** The user who receives the mail, if any. */
    user: text(),
    /** The values for the template; no secrets. */
    data: text({ mode: 'json' }).$type<Record<string, string>>().notNull(),
    state: text({ enum: ['waiting', 'sent', 'kept', 'failed'] }).notNull(),
    /** The content, kept only when mail delivery is disabled: it may contain a secret. */
    subject: text(),
    text: text(),
    html: text(),
    /** The error of the latest attempt. */
    error: text(),
    created: timestamp().notNull(),
    sent: timestamp(),
  },
  (table) => [
    index('mails_by_time').on(table.created, table._id),
    index('mails_to').on(table.recipientKey, table.sent),
  ],
)

/** Verified addresses that users have replaced: a recipient of mail there can revert the change until it expires. */
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

/** The devices from which users have signed in. */
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
