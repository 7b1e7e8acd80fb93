import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { blueprints } from '../../blueprints/tables'

/** The blueprints whose changes are logged. */
export const changeLogs = sqliteTable('change_logs', {
  blueprint: text()
    .primaryKey()
    .references(() => blueprints.key, { onDelete: 'cascade' }),
  /** All changes after this number are in the log. */
  since: integer().notNull(),
  /** When the log is disabled (ms), unless a subscriber renews it. */
  until: integer().notNull(),
})

/** The changes of entities, in order. */
export const entityChanges = sqliteTable(
  'entity_changes',
  {
    /** Grows with each change of the tenant in proportion to its size, so that numbers measure how much is kept. */
    number: integer().primaryKey(),
    blueprint: text()
      .notNull()
      .references(() => changeLogs.blueprint, { onDelete: 'cascade' }),
    made: integer().notNull(),
    /** The entity before and after, as in `entities`. A created entity has no before, a removed entity no after. */
    shownBefore: text('shown_before'),
    keysBefore: text('keys_before'),
    shown: text(),
    keys: text(),
  },
  (table) => [index('changes_of_blueprint').on(table.blueprint, table.number)],
)
