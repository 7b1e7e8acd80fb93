import { asc, eq, gt } from 'drizzle-orm'
import { extensions } from '../core/extension'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import type { Event } from './outbox'
import { enqueueAll, type NewJob } from './queue'
import { cursors, events } from './tables'
import type { JobSource } from './worker'

/** Who has something done about what happens. Both are asked of the database, each time: what is remembered may be late. */
export type EventSubscriber = {
  /** The number of the event after which it listens at a tenant: of its subscribers the first; undefined without any. */
  startsAfter(db: Db): Promise<number | undefined>
  /**
   * What is to be done about these events, in their order. Each job's id is made of the event and the subscriber, and
   * events up to the one after which a subscriber listens are none of theirs.
   */
  jobsFor(tenant: Tenant, events: Event[]): Promise<(NewJob & { _id: string })[]>
}

const EVENT_CURSOR = 'events'
const EVENTS_PER_BATCH = 500 // events at a time
const MAX_JOBS_PER_WRITE = 2_000 // jobs made by one write, unless a single event makes more

export const eventSubscribers = extensions<EventSubscriber>('event subscribers')
/** Up to which event this process knows that nothing is to be done. It saves a write for each that nobody hears. */
const dispatchedUpTo = new WeakMap<Db, number>()

/** The number of the newest event: in a write, after which a new subscriber listens. */
export async function lastEventSeq(db: Pick<Db, 'query'>): Promise<number> {
  const [[seq] = []] = await db.query('select max(seq) from events')
  return Number(seq ?? 0)
}

/**
 * Makes jobs of events for those who hear of them: exactly one for each event and subscriber, because the jobs and how far
 * was read are one write. Numbers of events come in the order of their commits, for a tenant's writes are one after the
 * other, so nothing comes later with a lower number. Where nobody listens nothing is written.
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
      const slice = await tenant.db
        .select()
        .from(events)
        .where(gt(events.seq, from))
        .orderBy(asc(events.seq))
        .limit(EVENTS_PER_BATCH)
      if (!slice.length) return
      tenant.signal.throwIfAborted()
      await dispatch(tenant, slice)
    }
  },
}

/** After which event there may be something to do; undefined where nobody listens. */
async function findPosition(db: Db): Promise<number | undefined> {
  const startPositions = (await Promise.all(eventSubscribers().map((subscriber) => subscriber.startsAfter(db)))).filter(
    (one) => one !== undefined,
  )
  if (!startPositions.length) return
  const row = await db.select({ seq: cursors.seq }).from(cursors).where(eq(cursors.name, EVENT_CURSOR)).get()
  return Math.max(row?.seq ?? 0, dispatchedUpTo.get(db) ?? 0, Math.min(...startPositions))
}

async function dispatch(tenant: Tenant, batch: Event[]) {
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

const collectJobs = async (tenant: Tenant, part: Event[]) =>
  (await Promise.all(eventSubscribers().map((subscriber) => subscriber.jobsFor(tenant, part)))).flat()

const saveCursor = (tx: Tx, seq: number) =>
  tx.insert(cursors).values({ name: EVENT_CURSOR, seq }).onConflictDoUpdate({ target: cursors.name, set: { seq } })
