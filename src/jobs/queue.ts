import { and, asc, eq, gt, inArray, isNotNull, isNull, lt, lte, ne, or, sql } from 'drizzle-orm'
import { DAY, now } from '../core/clock'
import type { Db, Tx } from '../storage/port'
import { prepared } from '../storage/store'
import type { Tenant } from '../tenancy/tenants'
import type { Lease } from './holding'
import { removeInSlices } from './removal'
import { jobs } from './tables'
import { wake } from './wake'

export type Job = typeof jobs.$inferSelect

export type NewJob = {
  kind: string
  /** What it is about, as JSON. */
  payload?: NonNullable<unknown>
  /** Jobs of one lane are done one after the other; without one, a job waits for no other. */
  lane?: string
  /** Not before this moment (ms). */
  at?: number
  /** When there is one of this id already, it stays as it is, and nothing is added. */
  _id?: string
}

/** What an attempt came to. */
export type Ending =
  /** It is over; its row goes, unless its outcome is `kept`. */
  | { state: 'done'; outcome?: unknown; kept?: boolean; effect?: (tx: Tx) => Promise<unknown> }
  /** It is tried at this moment (ms), with nothing said against it. */
  | { state: 'again'; due: number; payload?: NonNullable<unknown>; effect?: (tx: Tx) => Promise<unknown> }
  | { state: 'failed'; due: number; outcome?: unknown }
  /** It is given up, and stays to be looked at and tried again by hand. */
  | { state: 'dead'; outcome?: unknown }

const waitingIn = (lane: string) => and(eq(jobs.lane, lane), eq(jobs.state, 'waiting'))

const INSERT = `insert into jobs (_id, kind, lane, payload, state, attempts, due, created)
  values (?, ?, ?, ?, 'waiting', 0, ?, ?) on conflict ("_id") do nothing`

/** Has something done after this transaction, at least once, by whichever process gets to it. */
export async function enqueue({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, job: NewJob) {
  const { _id = Bun.randomUUIDv7(), kind, payload = {}, lane = _id, at = now() } = job
  const behind = job.lane && (await isBusy(tx, lane))
  await tx.ask(INSERT, [_id, kind, lane, JSON.stringify(payload), behind ? null : at, now()])
  tx.afterwards(() => wake(tenant))
}

/** The same for many jobs, lane by lane in the order in which they are given. */
export async function enqueueAll({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, list: NewJob[]) {
  const time = now()
  const [ledLanes, rows] = [new Set<string>(), [] as unknown[][]]
  for (const lane of new Set(list.flatMap(({ lane }) => lane ?? [])))
    if ((await tx.select({ seq: jobs.seq }).from(jobs).where(waitingIn(lane)).limit(1)).length) ledLanes.add(lane)
  for (const { _id = Bun.randomUUIDv7(), kind, payload = {}, lane = _id, at = time } of list) {
    rows.push([_id, kind, lane, JSON.stringify(payload), ledLanes.has(lane) ? null : at, time])
    ledLanes.add(lane)
  }
  await tx.each(INSERT, rows)
  tx.afterwards(() => wake(tenant))
}

// Each has an index of its own, which is found by these very words.
const lanes = { fresh: sql`attempts = 0`, retried: sql`attempts > 0` }

/** Jobs that were never tried, or those whose last attempt failed. */
export type Tried = keyof typeof lanes

const dueJobs = (db: Db, tried: Tried) =>
  db
    .select()
    .from(jobs)
    .where(and(lte(jobs.due, sql.placeholder('now')), lanes[tried]))
    .orderBy(asc(jobs.due), asc(jobs.seq))
    .limit(sql.placeholder('limit'))
    .prepare()

const nextJob = (db: Db, tried: Tried) =>
  db
    .select({ due: jobs.due })
    .from(jobs)
    .where(and(isNotNull(jobs.due), lanes[tried]))
    .orderBy(asc(jobs.due))
    .limit(1)
    .prepare()

const statements = prepared((db) => ({
  due: { fresh: dueJobs(db, 'fresh'), retried: dueJobs(db, 'retried') },
  next: { fresh: nextJob(db, 'fresh'), retried: nextJob(db, 'retried') },
}))

/** The first jobs that are due, one of each lane at most. */
export const due = (db: Db, tried: Tried, limit: number): Promise<Job[]> =>
  statements(db).due[tried].all({ now: now(), limit })

/** When the next job is due (ms). */
export async function nextDue(db: Db): Promise<number | undefined> {
  const { fresh, retried } = statements(db).next
  const rows = [await fresh.get(), await retried.get()]
  const moments = rows.flatMap((row) => row?.due ?? [])
  return moments.length ? Math.min(...moments) : undefined
}

/** Whether a job is due. */
export const isDue = async (db: Db): Promise<boolean> => ((await nextDue(db)) ?? Number.POSITIVE_INFINITY) <= now()

/** The jobs that wait for a later time: those of some kinds, and those that a clock has made which was ahead of ours. */
export const waitingLater = (db: Db, time: number, kinds: string[]): Promise<Job[]> =>
  db
    .select()
    .from(jobs)
    .where(and(gt(jobs.due, time), or(inArray(jobs.kind, kinds), gt(jobs.created, time))))

/** Has jobs come at another time, if they still wait for the one that was read. */
export async function reschedule(
  tx: Tx,
  changes: { job: Job; next: { due: number; payload?: NonNullable<unknown> } }[],
) {
  for (const { job, next } of changes)
    await tx
      .update(jobs)
      .set({ due: next.due, payload: next.payload ?? job.payload, created: Math.min(job.created, now()) })
      .where(and(eq(jobs.seq, job.seq), eq(jobs.due, job.due ?? next.due)))
}

/** The jobs that wait in a lane, in their order. */
export const waiting = (db: Db, lane: string, limit: number): Promise<Job[]> =>
  db.select().from(jobs).where(waitingIn(lane)).orderBy(asc(jobs.seq)).limit(limit)

/** Whether anything waits in a lane, or is being done there. */
export const isBusy = async (tx: Tx, lane: string): Promise<boolean> =>
  (await tx.select({ seq: jobs.seq }).from(jobs).where(waitingIn(lane)).limit(1)).length > 0

/** Has something done in place of all that waits in its lane. */
export async function enqueueInstead({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, job: NewJob & { lane: string }) {
  const { _id = Bun.randomUUIDv7(), kind, payload = {}, lane, at = now() } = job
  await discard(tx, lane)
  await tx.ask(INSERT, [_id, kind, lane, JSON.stringify(payload), at, now()])
  tx.afterwards(() => wake(tenant))
}

/** Takes out what waits in a lane. What is being done is not tried again. */
export const discard = (tx: Tx, lane: string) => tx.delete(jobs).where(waitingIn(lane)).run()

/** Writes down how jobs of one lane ended, and lets the next in the lane come. */
export async function settle(tx: Tx, endings: [Job, Ending][]) {
  const gone: number[] = []
  for (const [{ seq, attempts, payload }, ending] of endings) {
    const set = (to: Partial<Job>) => tx.update(jobs).set(to).where(eq(jobs.seq, seq))
    if ('effect' in ending) await ending.effect?.(tx)
    const finished = now()
    if (ending.state === 'again') await set({ due: ending.due, attempts: 0, payload: ending.payload ?? payload })
    else if (ending.state === 'failed')
      await set({ due: ending.due, attempts: attempts + 1, outcome: ending.outcome ?? null })
    else if (ending.state === 'dead' || ending.kept)
      await set({ state: ending.state, due: null, attempts: attempts + 1, finished, outcome: ending.outcome ?? null })
    else gone.push(seq)
  }
  if (gone.length) await tx.delete(jobs).where(inArray(jobs.seq, gone))
  const lane = endings[0]?.[0].lane
  if (lane) await lead(tx, lane)
}

/** Tries a job again that was given up, or was done: now, or when it is its lane's turn. False when there is none. */
export async function replay({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, _id: string): Promise<boolean> {
  const again = { state: 'waiting' as const, attempts: 0, created: now(), finished: null, due: null }
  const job = await tx.update(jobs).set(again).where(eq(jobs._id, _id)).returning().get()
  if (!job) return false
  // It may stand before the one that leads now.
  await tx.update(jobs).set({ due: null }).where(waitingIn(job.lane))
  await lead(tx, job.lane)
  tx.afterwards(() => wake(tenant))
  return true
}

const KEPT = 30 * DAY

/** Removes jobs that ended a month ago. */
export const removeOld = (tenant: Tenant & Lease) =>
  removeInSlices(tenant, jobs, jobs.seq, and(ne(jobs.state, 'waiting'), lt(jobs.finished, now() - KEPT)))

/** The first that waits in a lane is the one that is due. */
async function lead(tx: Tx, lane: string) {
  const [first] = await waiting(tx, lane, 1)
  if (first?.due === null)
    await tx
      .update(jobs)
      .set({ due: now() })
      .where(and(eq(jobs.seq, first.seq), isNull(jobs.due)))
}
