import { asc, eq, gt } from 'drizzle-orm'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import type { Event } from './outbox'
import { enqueueAll, type NewJob } from './queue'
import { cursors, events } from './tables'
import type { Feed } from './work'

/** Who has something done about what happens. Both are asked of the database, each time: what is remembered may be late. */
export type Hearer = {
  /** The number of the event after which it listens at a tenant: of its subscribers the first; undefined without any. */
  since(db: Db): Promise<number | undefined>
  /**
   * What is to be done about these events, in their order. Each job's id is made of the event and the subscriber, and
   * events up to the one after which a subscriber listens are none of theirs.
   */
  hear(tenant: Tenant, events: Event[]): Promise<(NewJob & { _id: string })[]>
}

const NAME = 'events'
const SLICE = 500 // events at a time
const MOST = 2_000 // jobs made by one write, unless a single event makes more

const hearers: Hearer[] = []
/** Up to which event this process knows that nothing is to be done. It saves a write for each that nobody hears. */
const passed = new WeakMap<Db, number>()

/** Says who hears of events. */
export const eventsAreHeardBy = (...some: Hearer[]) => void hearers.push(...some)

/** The number of the newest event: in a write, after which a new subscriber listens. */
export async function newestEvent(db: Pick<Db, 'ask'>): Promise<number> {
  const [[seq] = []] = await db.ask('select max(seq) from events')
  return Number(seq ?? 0)
}

/**
 * Makes jobs of events for those who hear of them: exactly one for each event and subscriber, because the jobs and how far
 * was read are one write. Numbers of events come in the order of their commits, for a tenant's writes are one after the
 * other, so nothing comes later with a lower number. Where nobody listens nothing is written.
 */
export const fanOut: Feed = {
  async waits({ db }) {
    const from = await position(db)
    return from !== undefined && (await newestEvent(db)) > from
  },
  async take(tenant) {
    for (;;) {
      const from = await position(tenant.db)
      if (from === undefined) return
      const slice = await tenant.db
        .select()
        .from(events)
        .where(gt(events.seq, from))
        .orderBy(asc(events.seq))
        .limit(SLICE)
      if (!slice.length) return
      tenant.signal.throwIfAborted()
      await hand(tenant, slice)
    }
  },
}

/** After which event there may be something to do; undefined where nobody listens. */
async function position(db: Db): Promise<number | undefined> {
  const listening = (await Promise.all(hearers.map((hearer) => hearer.since(db)))).filter((one) => one !== undefined)
  if (!listening.length) return
  const row = await db.select({ seq: cursors.seq }).from(cursors).where(eq(cursors.name, NAME)).get()
  return Math.max(row?.seq ?? 0, passed.get(db) ?? 0, Math.min(...listening))
}

async function hand(tenant: Tenant, slice: Event[]) {
  let part = slice
  let list = await heard(tenant, part)
  while (list.length > MOST && part.length > 1) {
    part = part.slice(0, part.length >> 1)
    list = await heard(tenant, part)
  }
  const { seq } = part.at(-1)!
  if (list.length)
    await tenant.write(async (tx) => {
      await enqueueAll(tenant, tx, list)
      await keep(tx, seq)
    })
  passed.set(tenant.db, seq)
}

const heard = async (tenant: Tenant, part: Event[]) =>
  (await Promise.all(hearers.map((hearer) => hearer.hear(tenant, part)))).flat()

const keep = (tx: Tx, seq: number) =>
  tx.insert(cursors).values({ name: NAME, seq }).onConflictDoUpdate({ target: cursors.name, set: { seq } })
