import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Imports of all or nothing that are not done for good. */
export const imports = sqliteTable(
  'imports',
  {
    /** The process, and an import of it. */
    _id: text().primaryKey(),
    blueprint: text().notNull(),
    /** Until when it counts as being worked on (ms). */
    busy: integer().notNull(),
  },
  (table) => [index('imports_of_blueprint').on(table.blueprint)],
)

/** What such an import has made or changed. */
export const importUndo = sqliteTable(
  'import_undo',
  {
    import: text().notNull(),
    /** An entity's `seq`. */
    entity: integer().notNull(),
    /** The entity as it was kept before, as JSON; null for one that was made. */
    before: text(),
  },
  (table) => [primaryKey({ columns: [table.import, table.entity] })],
)
