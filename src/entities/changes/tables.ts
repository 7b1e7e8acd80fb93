import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { blueprints } from '../../blueprints/tables'

/** Of which blueprints the changes are kept. */
export const changeLogs = sqliteTable('change_logs', {
  blueprint: text()
    .primaryKey()
    .references(() => blueprints.key, { onDelete: 'cascade' }),
  /** The changes after this number are there, all of them. */
  since: integer().notNull(),
  /** Until when they are kept (ms), unless somebody listens again. */
  until: integer().notNull(),
})

/** What happened to entities, in order. */
export const entityChanges = sqliteTable(
  'entity_changes',
  {
    /** Grows with each change of the tenant, by as much as it takes room: so numbers tell how much is kept. */
    number: integer().primaryKey(),
    blueprint: text()
      .notNull()
      .references(() => changeLogs.blueprint, { onDelete: 'cascade' }),
    made: integer().notNull(),
    /** The entity before and after, as `entities` has it; without the one it was made, without the other removed. */
    shownBefore: text('shown_before'),
    keysBefore: text('keys_before'),
    shown: text(),
    keys: text(),
  },
  (table) => [index('changes_of_blueprint').on(table.blueprint, table.number)],
)
