import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Atomic imports that have not been committed. */
export const imports = sqliteTable('imports', {
  /** The id of the process, and of the import. */
  _id: text().primaryKey(),
  blueprint: text().notNull(),
  /** Until when the import counts as running (ms). */
  busy: integer().notNull(),
})

/** The entities that an atomic import has created or changed. */
export const importUndo = sqliteTable(
  'import_undo',
  {
    import: text().notNull(),
    /** An entity's `seq`. */
    entity: integer().notNull(),
    /** The `_id`, because numbers are reused, followed by the previous state as JSON unless the entity was created. */
    before: text(),
  },
  (table) => [primaryKey({ columns: [table.import, table.entity] })],
)
