import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'

/** The contents of files, by their hash. A content is stored once, however many files have it. */
export const fileContents = sqliteTable('file_contents', {
  /** The SHA-256 of the bytes, in hex. */
  sha256: text().primaryKey(),
  size: integer().notNull(),
  /** When an upload last needed it. */
  claimed: timestamp().notNull(),
  removing: integer({ mode: 'boolean' }).notNull(),
  /** The bytes of each thumbnail, by the name under which it is stored. */
  thumbnails: text({ mode: 'json' }).$type<Record<string, number>>(),
  /** The bytes of all thumbnails. */
  thumbnailBytes: integer('thumbnail_bytes').notNull().default(0),
})

/** Uploaded files, without their contents. */
export const files = sqliteTable(
  'files',
  {
    _id: text().primaryKey(),
    name: text().notNull(),
    /** The media type that was detected in the content. */
    type: text().notNull(),
    size: integer().notNull(),
    /** The pixels of a picture as it is shown, where its header tells them. */
    width: integer(),
    height: integer(),
    sha256: text()
      .notNull()
      .references(() => fileContents.sha256),
    /** The id of the user who uploaded it. */
    owner: text().notNull(),
    workspace: text(),
    created: timestamp().notNull(),
    /** Whether it stays when no entity names it. */
    keep: integer({ mode: 'boolean' }).notNull().default(true),
    /** Since when no entity is known to name it. */
    unused: timestamp(),
  },
  ({ created, owner, sha256, _id }) => [
    index('files_by_time').on(created, _id),
    index('files_by_owner').on(owner, created, _id),
    index('files_by_content').on(sha256),
  ],
)
