import { integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../../storage/columns'

/** Mails that were requested to sign in. Codes and links are stored as hashes. */
export const emailSignIns = sqliteTable(
  'email_signins',
  {
    /** The hash of the token that the requesting device got. */
    _id: text().primaryKey(),
    email: text().notNull(),
    /** The normalized address. */
    emailKey: text('email_key').notNull(),
    /** The code and the link, once a mail contains them. */
    code: text(),
    link: text(),
    /** How many codes were entered. */
    tries: integer().notNull(),
    expires: timestamp().notNull(),
  },
  // There are few rows, and each index of a new tenant takes a page.
  ({ link }) => [uniqueIndex('email_signins_by_link').on(link)],
)
