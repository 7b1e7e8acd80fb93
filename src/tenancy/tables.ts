import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'

export const tenants = sqliteTable('tenants', {
  id: text().primaryKey(),
  /** Distinguishes a tenant from an earlier one with the same id. */
  uid: text().notNull().unique(),
  /** The identities that its data had before restores, latest first. */
  earlierUids: text('earlier_uids', { mode: 'json' }).$type<string[]>().notNull().default([]),
  status: text({ enum: ['active', 'suspended'] }).notNull(),
  /** Where its data is: `cluster/bucket` in PostgreSQL, empty for a file. */
  home: text().notNull(),
  created: timestamp().notNull(),
  /** When it was moved to this home. Data that a process opened before is not current, even at the same home. */
  moved: timestamp(),
  /** When its database was created; null until then. */
  made: timestamp(),
  /** The id of the user as whom the operator opens it. */
  support: text(),
  /** The schema of its database when it was last brought up to date, and why that failed last. */
  schemaVersion: integer('schema_version'),
  schemaProblem: text('schema_problem'),
  /** Since when nothing leaves it, because it is a copy; null for others. */
  outgoingHeld: timestamp('outgoing_held'),
  /** The restore that is replacing its data; null for others. */
  restoring: text({ mode: 'json' }).$type<PendingRestore>(),
  /** The server in whose folder its file is, where several servers share the registry. */
  fileServer: text('file_server'),
})

/**
 * A restore in place that has begun: the identity of the new data, the staged folder in which they are, and where the
 * database before goes (both relative to the data folder).
 */
export type PendingRestore = { uid: string; staged: string; trash: string; since: string }

/** What operators chose for the whole installation, by name. */
export const installationSettings = sqliteTable('installation_settings', {
  name: text().primaryKey(),
  value: text({ mode: 'json' }).$type<unknown>().notNull(),
})

/** The servers that share the registry. Each touches `seen` every few seconds. */
export const servers = sqliteTable('servers', {
  name: text().primaryKey(),
  details: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
  started: timestamp().notNull(),
  seen: timestamp().notNull(),
})

/** What the operator allows a tenant. */
export const tenantLimits = sqliteTable('tenant_limits', {
  tenant: text()
    .primaryKey()
    .references(() => tenants.id, { onDelete: 'cascade' }),
  rates: text({ mode: 'json' }).$type<Record<string, Record<string, number> | undefined>>().notNull(),
  quotas: text({ mode: 'json' }).$type<Record<string, number>>().notNull().default({}),
})

/** The last backup of each tenant, and the last one that failed. */
export const tenantBackups = sqliteTable('tenant_backups', {
  tenant: text()
    .primaryKey()
    .references(() => tenants.id, { onDelete: 'cascade' }),
  /** Where it is, when it was made, and its size in bytes; null before the first one. */
  place: text(),
  created: timestamp(),
  bytes: integer(),
  /** Why the last attempt failed, and when; null after one that succeeded. */
  problem: text(),
  failed: timestamp(),
})

/** What operators and the command line did with tenants. */
export const operatorEvents = sqliteTable(
  'operator_events',
  {
    _id: text().primaryKey(),
    eventName: text('event_name').notNull(),
    /** The id of the tenant, which may be gone. */
    tenant: text().notNull(),
    metadata: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
    created: timestamp().notNull(),
  },
  (table) => [index('operator_events_by_time').on(table.created, table._id)],
)

/** Tokens of the operator that allow a part of what the token of the settings does. Only their hashes are stored. */
export const operatorTokens = sqliteTable('operator_tokens', {
  _id: text().primaryKey(),
  name: text().notNull().unique(),
  hash: text().notNull().unique(),
  scopes: text({ mode: 'json' }).$type<string[]>().notNull(),
  created: timestamp().notNull(),
  expires: timestamp(),
  used: timestamp(),
})

/** Long work that operators started. The process that runs a task touches `updated` every few seconds. */
export const operatorTasks = sqliteTable(
  'operator_tasks',
  {
    _id: text().primaryKey(),
    kind: text().notNull(),
    /** The id of the tenant, which may be gone. */
    tenant: text().notNull(),
    status: text({ enum: ['running', 'succeeded', 'failed'] }).notNull(),
    input: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
    /** The latest line about it, and how much is done, from 0 to 1, where that is known. */
    progress: text({ mode: 'json' }).$type<{ message: string; fraction: number | null }>(),
    result: text({ mode: 'json' }).$type<Record<string, unknown>>(),
    problem: text({ mode: 'json' }).$type<{ code: string; message: string }>(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
    finished: timestamp(),
  },
  (table) => [index('operator_tasks_by_time').on(table.created, table._id)],
)

export const hosts = sqliteTable(
  'hosts',
  {
    host: text().primaryKey(),
    tenant: text()
      .notNull()
      .references(() => tenants.id, { onDelete: 'cascade' }),
    /** Whether the operator has assigned it. */
    given: integer({ mode: 'boolean' }).notNull(),
    /** The version of the tenant's configuration that claimed it for a website. */
    claimed: integer(),
    /** When its DNS record was last checked; null for a claim without proof, which is never released. */
    checked: timestamp(),
    /** Since when its DNS record has been missing. */
    missing: timestamp(),
  },
  (table) => [index('hosts_of_tenant').on(table.tenant)],
)

/** The certificates of hosts that are ordered from an ACME authority, also those that are still to be ordered. */
export const certificates = sqliteTable('certificates', {
  host: text().primaryKey(),
  /** The certificate and its chain, and the encrypted private key; null until the first was issued. */
  chain: text(),
  key: text(),
  issuer: text(),
  issued: timestamp(),
  expires: timestamp(),
  /** When it is ordered next. */
  due: timestamp().notNull(),
  /** When it was last ordered. */
  attempted: timestamp(),
  /** How many attempts have failed since the last success, and why the latest did. */
  failures: integer().notNull(),
  problem: text(),
})

/** The accounts with ACME authorities, with their encrypted private keys. */
export const acmeAccounts = sqliteTable('acme_accounts', {
  /** The address of the directory, followed by the id of the external account where it is bound to one. */
  directory: text().primaryKey(),
  url: text().notNull(),
  key: text().notNull(),
  created: timestamp().notNull(),
})

/** What any server answers to an ACME authority that checks a host. */
export const acmeChallenges = sqliteTable('acme_challenges', {
  token: text().primaryKey(),
  answer: text().notNull(),
  created: timestamp().notNull(),
})

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

/**
 * Rows in PostgreSQL that are not served: those of deleted or moved tenants, and unfinished copies. And contents of files
 * that deleted tenants left in a store; then `home` is their address.
 */
export const remains = sqliteTable(
  'remains',
  { uid: text().notNull(), home: text().notNull(), since: timestamp().notNull() },
  (table) => [primaryKey({ columns: [table.uid, table.home] })],
)

/**
 * The secrets of all nodes that share a database. With files they are in `secrets.json`, readable by its owner only.
 */
export const secrets = sqliteTable('secrets', { name: text().primaryKey(), value: text().notNull() })

/** The versions of cached data by topic, in every tenant's database and in the registry. */
export const versions = sqliteTable('versions', { topic: text().primaryKey(), version: integer().notNull() })
