import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { RequiredProp } from './shapes'

export const components = sqliteTable('components', {
  _id: text().primaryKey(),
  identifier: text().notNull().unique(),
  /** The path of its newest build, and the number of all its builds so far. */
  path: text().notNull(),
  builds: integer().notNull(),
  /** The number of characters of its content and its newest build. */
  size: integer().notNull(),
  version: integer().notNull(),
  created: timestamp().notNull(),
  updated: timestamp().notNull(),
  componentName: text('component_name').notNull(),
  description: text().notNull(),
  requiredProps: text('required_props', { mode: 'json' }).$type<RequiredProp[]>().notNull(),
  content: text().notNull(),
})

/** The newest builds of each component. Earlier ones are kept because open pages refer to them by path. */
export const builds = sqliteTable(
  'builds',
  {
    component: text()
      .notNull()
      .references(() => components._id, { onDelete: 'cascade' }),
    /** `<identifier>.<hash>` at the time of the build. */
    path: text().notNull(),
    number: integer().notNull(),
    js: text().notNull(),
    css: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.component, table.path] }), index('builds_by_path').on(table.path)],
)

export const blocks = sqliteTable(
  'blocks',
  {
    _id: text().primaryKey(),
    name: text().notNull(),
    contentType: text('content_type', { enum: ['content', 'html'] }).notNull(),
    /** The number of characters of its content and of `shown`. */
    size: integer().notNull(),
    version: integer().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
    /** The `POLICY_VERSION` by which its HTML was sanitized; null without HTML. */
    rules: text(),
    description: text().notNull(),
    /** The content as it was written. */
    content: text().notNull(),
    /** The sanitized content, if it differs from `content`. */
    shown: text(),
  },
  (table) => [index('blocks_by_time').on(table.created, table._id), index('blocks_by_name').on(table.name, table._id)],
)
