import { sql } from 'drizzle-orm'
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Which process may do a kind of work of the tenant's, one at a time. */
export const leases = sqliteTable('leases', {
  name: text().primaryKey(),
  /** Who works, for people who look; nothing once it was released. */
  holder: text(),
  /** How often it was taken. It only ever grows, so whoever has an older one is known to be late. */
  token: integer().notNull(),
  /** Until when nobody else gets it: ms since 1970, as the database's clock has it. */
  expires: integer().notNull(),
})

/** What has happened, in the order in which it was committed. The newest is never removed: numbers only grow. */
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
    /** Of which integration's run it comes, and how many runs led to it. */
    cause: text(),
    depth: integer().notNull().default(0),
  },
  ({ created, kind, eventName, user, seq }) => [
    index('events_by_time').on(created, seq),
    index('events_by_kind').on(kind, created, seq),
    index('events_by_name').on(eventName, created, seq),
    index('events_of_user').on(user, created, seq).where(sql`"user" is not null`),
  ],
)

/** How far somebody has read the events, by name. */
export const cursors = sqliteTable('cursors', { name: text().primaryKey(), seq: integer().notNull() })

/** What is to be done outside of requests. */
export const jobs = sqliteTable(
  'jobs',
  {
    seq: integer().primaryKey(),
    _id: text().notNull().unique(),
    /** Which code does it. */
    kind: text().notNull(),
    /** Jobs of one lane are done one after the other, in the order in which they were committed. */
    lane: text().notNull(),
    payload: text({ mode: 'json' }).notNull(),
    state: text().$type<'waiting' | 'done' | 'dead'>().notNull(),
    attempts: integer().notNull(),
    /** When it is tried (next), in ms; only the first that waits in its lane has one. */
    due: integer(),
    created: integer().notNull(),
    finished: integer(),
    /** What its latest attempt came to. */
    outcome: text({ mode: 'json' }),
  },
  ({ due, seq, lane, state, kind, finished }) => [
    index('jobs_fresh').on(due, seq).where(sql`due is not null and attempts = 0`),
    index('jobs_retried').on(due, seq).where(sql`due is not null and attempts > 0`),
    index('jobs_by_lane').on(lane, state, seq),
    index('jobs_by_kind').on(kind, state, finished),
  ],
)
