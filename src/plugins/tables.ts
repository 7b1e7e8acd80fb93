import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'

/** Which events a plugin wants to hear of, and where; `*` is any. */
export type EventSubscription = {
  source: string
  kind: string
  eventName: string
  hookUrl: string
  /** False once the other side has said that there is nobody any more. */
  active: boolean
  /** The number of the event after which it listens. */
  since: number
}

/** Other servers that take part. Their secrets are in the vault. */
export const plugins = sqliteTable(
  'plugins',
  {
    _id: text().primaryKey(),
    name: text().notNull().unique(),
    description: text().notNull(),
    manifestUrl: text('manifest_url'),
    /** What of `/api/<apiPath>/…` is passed on to `proxyUrl`. */
    apiPath: text('api_path').unique(),
    proxyUrl: text('proxy_url'),
    subscribedEvents: text('subscribed_events', { mode: 'json' }).$type<EventSubscription[]>().notNull(),
    active: integer({ mode: 'boolean' }).notNull(),
    /** The user as whom it comes. */
    account: text().unique(),
    /** How long its secret of before signs, too. */
    formerUntil: timestamp('former_until'),
    lastError: text('last_error'),
    failed: timestamp(),
    succeeded: timestamp(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
  },
  ({ created, _id }) => [index('plugins_by_time').on(created, _id)],
)

/** What plugins were told, and what they said. Those of a plugin that is gone are removed by and by. */
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
    /** Of the latest answer. */
    status: integer(),
    /** ms until then. */
    duration: integer(),
    /** How it begins. */
    answer: text().notNull(),
    error: text(),
    /** When it is tried next. */
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
