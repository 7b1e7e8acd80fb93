import { asc, eq, gt } from 'drizzle-orm'
import { extensions } from '../core/extension'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import type { EventHead } from './outbox'
import { enqueueAll, type NewJob } from './queue'
import { cursors, events } from './tables'
import type { JobSource } from './worker'

/** Makes jobs of events. Both methods read the database each time, because cached data may be outdated. */
export type EventSubscriber = {
  /**
   * Returns the number of the event after which the first subscriber of a tenant starts, or undefined when there is
   * none.
   */
  startsAfter(db: Db): Promise<number | undefined>
  /**
   * Returns the jobs for these events, in their order. A job's id is derived from the event and the subscriber. A
   * subscriber gets no events up to the one after which it starts.
   */
  jobsFor(tenant: Tenant, events: EventHead[]): Promise<(NewJob & { _id: string })[]>
}

/** The name of the position in the events up to which subscribers were told. */
export const EVENT_CURSOR = 'events'
const EVENTS_PER_BATCH = 500
const MAX_JOBS_PER_WRITE = 2_000 // unless a single event makes more

const { seq, _id, source, kind, eventName, cause, depth, trace } = events
const HEAD_COLUMNS = { seq, _id, source, kind, eventName, cause, depth, trace }

export const eventSubscribers = extensions<EventSubscriber>('event subscribers')
/** The last event up to which this process has dispatched all. It saves a write for each event without a subscriber. */
const dispatchedUpTo = new WeakMap<Db, number>()

/** Returns the number of the newest event. In a write, a new subscriber starts after it. */
export async function lastEventSeq(db: Pick<Db, 'query'>): Promise<number> {
  const [[seq] = []] = await db.query('select max(seq) from events')
  return Number(seq ?? 0)
}

/**
 * Makes jobs of events for their subscribers: exactly one for each event and subscriber, because the jobs and the
 * position are saved in one write. Events are numbered in the order of their commits, because a tenant's writes are
 * serialized, so no event appears later with a lower number. Without subscribers nothing is written.
 */
export const eventDispatcher: JobSource = {
  async hasPending({ db }) {
    const from = await findPosition(db)
    return from !== undefined && (await lastEventSeq(db)) > from
  },
  async collect(tenant) {
    for (;;) {
      const from = await findPosition(tenant.db)
      if (from === undefined) return
      const batch = await tenant.db
        .select(HEAD_COLUMNS)
        .from(events)
        .where(gt(events.seq, from))
        .orderBy(asc(events.seq))
        .limit(EVENTS_PER_BATCH)
      if (!batch.length) return
      tenant.signal.throwIfAborted()
      await dispatch(tenant, batch)
    }
  },
}

/** Returns how many events of a tenant still have to be dispatched to its subscribers. */
export async function countUndispatchedEvents(db: Db): Promise<number> {
  const from = await findPosition(db)
  return from === undefined ? 0 : Math.max(0, (await lastEventSeq(db)) - from)
}

/** Returns the event after which others may have to be dispatched, or undefined without subscribers. */
async function findPosition(db: Db): Promise<number | undefined> {
  const startPositions = (await Promise.all(eventSubscribers().map((subscriber) => subscriber.startsAfter(db)))).filter(
    (position) => position !== undefined,
  )
  if (!startPositions.length) return
  const row = await db.select({ seq: cursors.seq }).from(cursors).where(eq(cursors.name, EVENT_CURSOR)).get()
  return Math.max(row?.seq ?? 0, dispatchedUpTo.get(db) ?? 0, Math.min(...startPositions))
}

async function dispatch(tenant: Tenant, batch: EventHead[]) {
  let part = batch
  let newJobs = await collectJobs(tenant, part)
  while (newJobs.length > MAX_JOBS_PER_WRITE && part.length > 1) {
    part = part.slice(0, part.length >> 1)
    newJobs = await collectJobs(tenant, part)
  }
  const { seq } = part.at(-1)!
  if (newJobs.length)
    await tenant.write(async (tx) => {
      await enqueueAll(tenant, tx, newJobs)
      await saveCursor(tx, seq)
    })
  dispatchedUpTo.set(tenant.db, seq)
}

const collectJobs = async (tenant: Tenant, part: EventHead[]) =>
  (await Promise.all(eventSubscribers().map((subscriber) => subscriber.jobsFor(tenant, part)))).flat()

const saveCursor = (tx: Tx, seq: number) =>
  tx.insert(cursors).values({ name: EVENT_CURSOR, seq }).onConflictDoUpdate({ target: cursors.name, set: { seq } })
