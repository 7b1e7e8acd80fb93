import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { blueprints } from '../blueprints/tables'
import { timestamp } from '../storage/columns'

export const entities = sqliteTable(
  'entities',
  {
    /** Stands for the entity in the index, and orders those of one millisecond. */
    seq: integer().primaryKey(),
    _id: text().notNull().unique(),
    blueprint: text()
      .notNull()
      .references(() => blueprints.key),
    identifier: text().notNull(),
    user: text(),
    workspace: text(),
    /** The entity as it is shown wrapped, as JSON text without its braces: read as it is, and hardly ever parsed. */
    shown: text().notNull(),
    /** The properties' texts of the index, as JSON: `f<number>` or `f<number>.<path>` to a text or a list of them. */
    keys: text().notNull(),
    version: integer().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
    /** What it is shown as (see `shown`) from this form of its blueprint on; a form of -1: that is still to be made. */
    altered: text(),
    form: integer(),
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

/** Of which blueprints the words are kept: of entities up to `upto`, those up to `done`; of later ones, all. */
export const searchProgress = sqliteTable('search_progress', {
  blueprint: text()
    .primaryKey()
    .references(() => blueprints.key, { onDelete: 'cascade' }),
  done: integer().notNull(),
  upto: integer().notNull(),
})

/** A row for each value by which an entity can be found, in the order in which it is asked for. */
export const entityIndex = sqliteTable(
  'entity_index',
  {
    field: integer().notNull(),
    /** Where in an object the value is; empty for the field itself. */
    path: text().notNull(),
    value: text().notNull(),
    created: integer().notNull(),
    /** An entity's `seq`; no reference, for checking it at every row would cost as much as writing it. */
    entity: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.field, table.path, table.value, table.created, table.entity] })],
)
