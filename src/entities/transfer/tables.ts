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
    /** Its `_id`, for others may have its number by now; and after that, unless it was made, how it was kept, as JSON. */
    before: text(),
  },
  (table) => [primaryKey({ columns: [table.import, table.entity] })],
)
