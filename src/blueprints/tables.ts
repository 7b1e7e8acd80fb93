import { integer, primaryKey, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { CompoundParts } from './compound-parts'
import type { HistoryFields } from './history'
import type { ChangeError, PendingChange } from './schema-diff'
import type { Definition, IndexReason } from './shapes'

export const blueprints = sqliteTable('blueprints', {
  key: text().primaryKey(),
  _id: text().notNull().unique(),
  name: text().notNull(),
  description: text().notNull(),
  definition: text({ mode: 'json' }).$type<Definition>().notNull(),
  version: integer().notNull(),
  /** The number of the alteration that is in force. */
  form: integer().notNull().default(0),
  /** Counts the changes of the indexes of fields, so that a writer with an outdated model notices them. */
  indexing: integer().notNull().default(0),
  /** The number of the history of its entities, if it has one. */
  historyNumber: integer('history_number'),
  historyFields: text('history_fields', { mode: 'json' }).$type<HistoryFields>(),
  /**
   * What its entities have in the place of its key: a number that no other blueprint of the tenant has had, or the key
   * itself. Keys begin with a letter.
   */
  code: text().notNull(),
  created: timestamp().notNull(),
  updated: timestamp().notNull(),
})

/** The index refers to fields by number: rows stay small, and a rename does not touch them. */
export const fields = sqliteTable(
  'fields',
  {
    number: integer().primaryKey(),
    blueprint: text()
      .notNull()
      .references(() => blueprints.key, { onDelete: 'cascade' }),
    key: text().notNull(),
    /** The version of its index keys: another one needs another number. */
    indexKeys: integer('index_keys').notNull().default(0),
  },
  (table) => [unique().on(table.blueprint, table.key)],
)

/**
 * The fields that may have rows in the index, and the compound indexes. Without foreign key to the field, because a
 * cutover writes all fields of a blueprint again.
 */
export const fieldIndexes = sqliteTable(
  'field_indexes',
  {
    blueprint: text()
      .notNull()
      .references(() => blueprints.key, { onDelete: 'cascade' }),
    /** The number of the field; of a compound index a number of its own, which is negative. */
    number: integer().notNull(),
    /** The parts of a compound index. */
    parts: text({ mode: 'json' }).$type<CompoundParts>(),
    /**
     * `building`: writers maintain the index, but it lacks entities. `ready`: queries use it. `retiring`: queries no
     * longer use it, but writers maintain it. `removing`: nobody maintains it, and its rows are being deleted.
     */
    state: text().$type<'building' | 'ready' | 'retiring' | 'removing'>().notNull(),
    /** What it was built for. */
    reason: text().$type<IndexReason>().notNull(),
    since: timestamp().notNull(),
    /** When a query last used it; up to a day late. */
    used: timestamp().notNull(),
    /** While it is being built: of the entities with a `seq` up to `upto`, those up to `done` are indexed. */
    done: integer().notNull(),
    upto: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.blueprint, table.number] })],
)

/** Alterations: changes that entities must be prepared for before they can be in force, with their progress. */
export const alterations = sqliteTable('alterations', {
  blueprint: text()
    .primaryKey()
    .references(() => blueprints.key, { onDelete: 'cascade' }),
  /** The unique number of the alteration; the blueprint has it as `form` when the change is in force. */
  form: integer().notNull(),
  /**
   * `preparing`: the change is not in force yet. `cleaning`: it is in force, or was given up, and obsolete data is
   * removed. `failed`: it was given up, and everything is as before.
   */
  state: text().$type<'preparing' | 'cleaning' | 'failed'>().notNull(),
  change: text({ mode: 'json' }).$type<PendingChange>().notNull(),
  /**
   * The last processed entity, in the order of `created` and `seq`; only those with a `seq` up to `upto` are processed.
   */
  created: integer().notNull(),
  entity: integer().notNull(),
  upto: integer().notNull(),
  done: integer().notNull(),
  total: integer().notNull(),
  /** The reason why it was given up. */
  problem: text({ mode: 'json' }).$type<ChangeError>(),
  since: timestamp().notNull(),
})
