import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'

/** The events that a plugin receives at `hookUrl`; `*` matches any. */
export type EventSubscription = {
  source: string
  kind: string
  eventName: string
  hookUrl: string
  /** False after the URL has answered 410. */
  active: boolean
  /** The sequence number (`seq`) of the event after which it receives events. */
  since: number
}

/** Plugins. Their secrets are in the vault. */
export const plugins = sqliteTable('plugins', {
  _id: text().primaryKey(),
  name: text().notNull().unique(),
  description: text().notNull(),
  manifestUrl: text('manifest_url'),
  /** Requests to `/api/<apiPath>/…` are forwarded to `proxyUrl`. */
  apiPath: text('api_path').unique(),
  proxyUrl: text('proxy_url'),
  subscribedEvents: text('subscribed_events', { mode: 'json' }).$type<EventSubscription[]>().notNull(),
  active: integer({ mode: 'boolean' }).notNull(),
  /** The id of its service account. */
  account: text().unique(),
  /** When the former secret stops signing. */
  formerUntil: timestamp('former_until'),
  lastError: text('last_error'),
  failed: timestamp(),
  succeeded: timestamp(),
  created: timestamp().notNull(),
  updated: timestamp().notNull(),
})

/** Events sent to plugins, and their answers. Housekeeping removes the rows of removed plugins. */
export const deliveries = sqliteTable(
  'deliveries',
  {
    _id: text().primaryKey(),
    plugin: text().notNull(),
    event: text().notNull(),
    source: text().notNull(),
    kind: text().notNull(),
    eventName: text('event_name').notNull(),
    hookUrl: text('hook_url').notNull(),
    state: text().$type<'waiting' | 'failing' | 'delivered' | 'dead' | 'canceled'>().notNull(),
    attempts: integer().notNull(),
    /** The HTTP status of the latest answer. */
    status: integer(),
    /** ms of the latest attempt. */
    duration: integer(),
    /** The first 1,024 bytes of the latest answer. */
    answer: text().notNull(),
    error: text(),
    /** The time of the next attempt. */
    due: timestamp(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
  },
  ({ plugin, state, created, updated, _id }) => [
    index('deliveries_of_plugin').on(plugin, created, _id),
    index('deliveries_by_state').on(plugin, state, created, _id),
    index('deliveries_by_time').on(updated),
  ],
)
