import { integer, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { ChangeError, PendingChange } from './schema-diff'
import type { Definition } from './shapes'

export const blueprints = sqliteTable('blueprints', {
  key: text().primaryKey(),
  _id: text().notNull().unique(),
  name: text().notNull(),
  description: text().notNull(),
  definition: text({ mode: 'json' }).$type<Definition>().notNull(),
  version: integer().notNull(),
  /** Which alteration of its entities is in force. */
  form: integer().notNull().default(0),
  created: timestamp().notNull(),
  updated: timestamp().notNull(),
})

/** A field's number stands for it in the index: rows stay small, and a field can be renamed without touching them. */
export const fields = sqliteTable(
  'fields',
  {
    number: integer().primaryKey(),
    blueprint: text()
      .notNull()
      .references(() => blueprints.key, { onDelete: 'cascade' }),
    key: text().notNull(),
  },
  (table) => [unique().on(table.blueprint, table.key)],
)

/** What the entities of a blueprint have to become before a change of it can be in force, and how far that is. */
export const alterations = sqliteTable('alterations', {
  blueprint: text()
    .primaryKey()
    .references(() => blueprints.key, { onDelete: 'cascade' }),
  /** What the form of the blueprint will be; no other alteration has the same. */
  form: integer().notNull(),
  /**
   * `preparing`: the change is not in force yet. `cleaning`: it is (or was given up), and what is not needed any more goes.
   * `failed`: all is as it was before.
   */
  state: text().$type<'preparing' | 'cleaning' | 'failed'>().notNull(),
  change: text({ mode: 'json' }).$type<PendingChange>().notNull(),
  /** Up to which entity, in the order of `created` and `seq`; of those that have a `seq` up to `upto`. */
  created: integer().notNull(),
  entity: integer().notNull(),
  upto: integer().notNull(),
  done: integer().notNull(),
  total: integer().notNull(),
  /** Why it was given up. */
  problem: text({ mode: 'json' }).$type<ChangeError>(),
  since: timestamp().notNull(),
})
