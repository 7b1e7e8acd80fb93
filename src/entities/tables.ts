import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { blueprints } from '../blueprints/tables'
import { timestamp } from '../storage/columns'

export const entities = sqliteTable(
  'entities',
  {
    /** The number of the entity in the index; it also orders entities of the same millisecond. */
    seq: integer().primaryKey(),
    /** Null when it is the identifier. Entities of earlier versions have it in both columns. */
    _id: text().unique(),
    /** The code of its blueprint. It has no foreign key: every write checks the version of the blueprint. */
    blueprint: text().notNull(),
    identifier: text().notNull(),
    user: text(),
    workspace: text(),
    /**
     * The document, as JSON. Entities that were written by an earlier version have their system properties before it, and
     * then `,"metadata":`.
     */
    shown: text().notNull(),
    /** The index keys of the properties, as JSON: `f<number>` or `f<number>.<path>` to a key or a list of keys. */
    keys: text().notNull(),
    version: integer().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
    /**
     * Replaces `shown` once the blueprint has reached `form`. A form of -1 marks an entity that is still to be
     * transformed.
     */
    altered: text(),
    form: integer(),
    /** The history that the following columns belong to: what they say of an earlier one no longer counts. */
    history: integer(),
    /** The number of the latest version. */
    versionNumber: integer('version_number'),
    /** The `seq` of the latest version; null when there has been no change since the creation. */
    versionRow: integer('version_row'),
    /** The user who created the entity, if it was created with a history. */
    creator: text(),
  },
  (table) => [
    unique().on(table.blueprint, table.identifier),
    index('entities_to_alter').on(table.blueprint, table.seq).where(sql`form = -1`),
    index('entities_by_time').on(table.blueprint, table.created, table.seq),
    index('entities_by_change').on(table.blueprint, table.updated, table.created, table.seq),
    index('entities_of_user').on(table.blueprint, table.user, table.created, table.seq),
    index('entities_of_workspace')
      .on(table.blueprint, table.workspace, table.created, table.seq)
      .where(sql`workspace is not null`),
  ],
)

/**
 * The blueprints whose words are indexed. Of the entities up to number `upto`, those up to `done` are indexed; all
 * later entities are.
 */
export const searchProgress = sqliteTable('search_progress', {
  blueprint: text()
    .primaryKey()
    .references(() => blueprints.key, { onDelete: 'cascade' }),
  done: integer().notNull(),
  upto: integer().notNull(),
})

/** A row for each value by which an entity can be found, in the order in which queries read them. */
export const entityIndex = sqliteTable(
  'entity_index',
  {
    field: integer().notNull(),
    /** The path of the value in an object; empty for the field itself. */
    path: text().notNull(),
    value: text().notNull(),
    created: integer().notNull(),
    /** An entity's `seq`. It has no foreign key, because checking one costs as much as writing the row. */
    entity: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.field, table.path, table.value, table.created, table.entity] })],
)
