import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
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

/** The blueprints of which it is noted which entities change. */
export const trackedBlueprints = sqliteTable('tracked_blueprints', {
  blueprint: text()
    .primaryKey()
    .references(() => blueprints.key, { onDelete: 'cascade' }),
  /** When the notes began (ms). What was read by earlier notes is outdated. */
  started: integer().notNull(),
  /** When the notes end (ms), unless somebody needs them again. */
  until: integer().notNull(),
})

/** The entities that were created, changed or removed, in the order of commits. */
export const trackedChanges = sqliteTable(
  'tracked_changes',
  {
    /** It has no foreign key, because a blueprint may be removed by the transaction that changes its entities. */
    blueprint: text().notNull(),
    number: integer().notNull(),
    /** The `seq` of each entity that one transaction changed, as JSON. */
    entities: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.blueprint, table.number] })],
)
