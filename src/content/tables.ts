import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { RequiredProp } from './shapes'

export const components = sqliteTable(
  'components',
  {
    _id: text().primaryKey(),
    identifier: text().notNull().unique(),
    /** The path of its newest build, and how many builds there were. */
    path: text().notNull(),
    builds: integer().notNull(),
    /** What it takes to keep: the characters of its content and of its newest build. */
    size: integer().notNull(),
    version: integer().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
    componentName: text('component_name').notNull(),
    description: text().notNull(),
    requiredProps: text('required_props', { mode: 'json' }).$type<RequiredProp[]>().notNull(),
    content: text().notNull(),
  },
  (table) => [index('components_by_time').on(table.created, table._id)],
)

/** What was made of a component, also lately: pages that are open refer to it by its path. */
export const builds = sqliteTable(
  'builds',
  {
    component: text()
      .notNull()
      .references(() => components._id, { onDelete: 'cascade' }),
    /** `<identifier>.<hash>`, as they were then. */
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
    /** What it takes to keep: the characters of its content, and of what is shown of it. */
    size: integer().notNull(),
    version: integer().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
    /** The rules by which HTML was made harmless. */
    rules: text(),
    description: text().notNull(),
    /** As it was written. */
    content: text().notNull(),
    /** What of it is shown, where that is something else. */
    shown: text(),
  },
  (table) => [index('blocks_by_time').on(table.created, table._id), index('blocks_by_name').on(table.name, table._id)],
)
