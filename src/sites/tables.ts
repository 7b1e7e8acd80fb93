import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'

/** A content in the store of files. */
export type StoredContent = { sha256: string; size: number }

/** Encodings in which a file of a site may be stored besides its own content. */
export type SiteEncoding = 'br' | 'gzip'

/** A file of a deployment. `path` is what follows the first slash of its URL, decoded, such as `assets/index.js`. */
export type SiteFile = StoredContent & { path: string; encodings?: Partial<Record<SiteEncoding, StoredContent>> }

/** The deployments of a tenant's site. The one with the highest activation is active. */
export const siteDeployments = sqliteTable('site_deployments', {
  _id: text().primaryKey(),
  /** When it became active, in seconds, and later than all before. */
  activation: integer().notNull(),
  spa: integer({ mode: 'boolean' }).notNull(),
  files: integer().notNull(),
  bytes: integer().notNull(),
  /** The id of the user who deployed it, or `operator`. */
  by: text('deployed_by').notNull(),
  created: timestamp().notNull(),
  manifest: text({ mode: 'json' }).$type<SiteFile[]>().notNull(),
})
