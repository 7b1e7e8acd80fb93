import { sql } from 'drizzle-orm'
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Leases: which process may do a kind of work for the tenant, one at a time. */
export const leases = sqliteTable('leases', {
  name: text().primaryKey(),
  /** The holder, for people who look; null once the lease was released. */
  holder: text(),
  /** How often it was acquired. It only grows, so a holder with an older token is known to be late. */
  token: integer().notNull(),
  /** Until when no other process gets it: ms since 1970, by the database's clock. */
  expires: integer().notNull(),
})

/** Events in the order of their commits. The newest is never deleted, so that numbers only grow. */
export const events = sqliteTable(
  'events',
  {
    seq: integer().primaryKey(),
    _id: text().notNull().unique(),
    source: text().notNull(),
    kind: text().notNull(),
    eventName: text('event_name').notNull(),
    description: text().notNull(),
    metadata: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
    user: text(),
    workspace: text(),
    created: integer().notNull(),
    /** The integration run that caused the event, and how many runs led to it. */
    cause: text(),
    depth: integer().notNull().default(0),
    /** The trace of the request that caused it (W3C traceparent). */
    trace: text(),
  },
  ({ created, kind, eventName, user, seq }) => [
    index('events_by_time').on(created, seq),
    index('events_by_kind').on(kind, created, seq),
    index('events_by_name').on(eventName, created, seq),
    index('events_of_user').on(user, created, seq).where(sql`"user" is not null`),
  ],
)

/** Positions of readers in the events, by name. */
export const cursors = sqliteTable('cursors', { name: text().primaryKey(), seq: integer().notNull() })

/** Work outside of requests. */
export const jobs = sqliteTable(
  'jobs',
  {
    seq: integer().primaryKey(),
    _id: text().notNull().unique(),
    /** The kind, which selects the handler. */
    kind: text().notNull(),
    /** Jobs with the same ordering key run one after the other, in the order of their commits. */
    orderingKey: text('lane').notNull(),
    payload: text({ mode: 'json' }).notNull(),
    state: text().$type<'waiting' | 'done' | 'dead'>().notNull(),
    attempts: integer().notNull(),
    /** When it runs next, in ms; only the first waiting job of an ordering key has a time. */
    due: integer(),
    created: integer().notNull(),
    finished: integer(),
    /** The outcome of the latest attempt. */
    outcome: text({ mode: 'json' }),
    /** The trace of the request that caused it (W3C traceparent). */
    trace: text(),
  },
  ({ due, seq, orderingKey, state, kind, finished }) => [
    index('jobs_fresh').on(due, seq).where(sql`due is not null and attempts = 0`),
    index('jobs_retried').on(due, seq).where(sql`due is not null and attempts > 0`),
    index('jobs_by_lane').on(orderingKey, state, seq),
    index('jobs_by_kind').on(kind, state, finished),
  ],
)
