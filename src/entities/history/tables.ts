import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/**
 * The versions of entities, by the number of a blueprint's history and the identifier of an entity, which outlives it. A
 * history that no blueprint has any more is removed by the housekeeping.
 */
export const entityVersions = sqliteTable(
  'entity_versions',
  {
    history: integer().notNull(),
    identifier: text().notNull(),
    number: integer().notNull(),
    at: integer().notNull(),
    author: text(),
    /** 0: changed, 1: created, 2: removed. */
    action: integer().notNull(),
    /**
     * What the change replaced, as JSON: former values by the numbers of their fields, null where there was none. The
     * oldest version of an entity has none, because what was before it is not kept.
     */
    former: text(),
  },
  (table) => [primaryKey({ columns: [table.history, table.identifier, table.number] })],
)
