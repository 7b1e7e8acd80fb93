import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'

export const tenants = sqliteTable('tenants', {
  id: text().primaryKey(),
  /** Tells a tenant from an earlier one of the same id. */
  uid: text().notNull().unique(),
  status: text({ enum: ['active', 'suspended'] }).notNull(),
  /** Where its data is: `cluster/bucket` in PostgreSQL, empty for a file. */
  home: text().notNull(),
  created: timestamp().notNull(),
  /** When it came to this home. What a process has open of another time is not this one's, even of the same home. */
  moved: timestamp(),
  /** When its database was made; nothing while that is being done. */
  made: timestamp(),
})

export const hosts = sqliteTable(
  'hosts',
  {
    host: text().primaryKey(),
    tenant: text()
      .notNull()
      .references(() => tenants.id, { onDelete: 'cascade' }),
    /** Whether who runs the installation has said so. */
    given: integer({ mode: 'boolean' }).notNull(),
    /** The version of the tenant's configuration for which it was claimed as the host of a website. */
    claimed: integer(),
    /** When its DNS record was looked at last; empty for a claim without a proof, which nothing takes away. */
    checked: timestamp(),
    /** Since when its DNS record has been missing. */
    missing: timestamp(),
  },
  (table) => [index('hosts_of_tenant').on(table.tenant)],
)

/** The origins of the tenants' websites, with the version of the configuration that names them. */
export const origins = sqliteTable(
  'origins',
  {
    origin: text().notNull(),
    tenant: text()
      .notNull()
      .references(() => tenants.id, { onDelete: 'cascade' }),
    version: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.origin, table.tenant] }), index('origins_of_tenant').on(table.tenant)],
)

/** The schemas of PostgreSQL that tenants share; `home` is `cluster/schema`. */
export const buckets = sqliteTable('buckets', { home: text().primaryKey(), created: timestamp().notNull() })

/** What is in PostgreSQL without being served from there: rows of tenants that were deleted or moved, unfinished copies. */
export const remains = sqliteTable(
  'remains',
  { uid: text().notNull(), home: text().notNull(), since: timestamp().notNull() },
  (table) => [primaryKey({ columns: [table.uid, table.home] })],
)

/** What signs and encrypts for all nodes that share a database; with files it is `secrets.json`, readable by its owner only. */
export const secrets = sqliteTable('secrets', { name: text().primaryKey(), value: text().notNull() })

/** How often what is kept in memory has changed, by topic; in every tenant's database and in the registry. */
export const versions = sqliteTable('versions', { topic: text().primaryKey(), version: integer().notNull() })
