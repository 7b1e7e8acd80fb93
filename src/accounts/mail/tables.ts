import { index, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { TemplateName } from '../../platform/mail/templates'
import { timestamp } from '../../storage/columns'
import { users } from '../tables'

/** Mails that were sent or are queued. */
export const mails = sqliteTable(
  'mails',
  {
    _id: text().primaryKey(),
    recipient: text().notNull(),
    /** The normalized address. */
    recipientKey: text('recipient_key').notNull(),
    template: text().$type<TemplateName>().notNull(),
    /** The id of the recipient, if they are a user. */
    user: text(),
    /** Values for the template; nothing secret. */
    data: text({ mode: 'json' }).$type<Record<string, string>>().notNull(),
    state: text({ enum: ['waiting', 'sent', 'kept', 'failed'] }).notNull(),
    /** The content. The text and HTML may hold a secret, so they are only stored where mail delivery is disabled. */
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

/** Verified addresses that users gave up. The change can be reverted from the old address until it expires. */
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

/** Devices on which users have signed in. */
export const devices = sqliteTable(
  'devices',
  {
    user: text()
      .notNull()
      .references(() => users._id, { onDelete: 'cascade' }),
    /** A hash of the user agent and the address. */
    device: text().notNull(),
    seen: timestamp().notNull(),
  },
  (table) => [primaryKey({ columns: [table.user, table.device] }), index('devices_by_time').on(table.seen)],
)
