import { sql } from 'drizzle-orm'
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/**
 * The versions of entities, in the order in which they were written. An entity has the number of its latest one, and each
 * names the one before it. A history that no blueprint has any more is removed by the housekeeping.
 */
export const entityVersions = sqliteTable(
  'entity_versions',
  {
    seq: integer().primaryKey(),
    /** The number of a blueprint's history. */
    history: integer().notNull(),
    identifier: text().notNull(),
    number: integer().notNull(),
    at: integer().notNull(),
    /** When the state before was last written: what `updated` was until then. */
    since: integer().notNull(),
    /** 0: changed, 1: created, 2: removed. */
    action: integer().notNull(),
    /** The `seq` of the version before; null when that is not kept, or follows from the entity, as its creation does. */
    previous: integer(),
    author: text(),
    /**
     * What the change replaced, as JSON: former values by the numbers of their fields, null where there was none. The
     * oldest version of an entity may have none, because what was before it is not kept.
     */
    former: text(),
  },
  (table) => [index('entity_removals').on(table.history, table.identifier, table.seq, table.at).where(sql`action = 2`)],
)
