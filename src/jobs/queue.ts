import { and, asc, eq, gt, inArray, isNotNull, isNull, lt, lte, ne, or, sql } from 'drizzle-orm'
import { DAY_MS, now } from '../core/clock'
import { currentTraceparent } from '../core/trace'
import type { Db, Tx } from '../storage/port'
import { prepareFirst, prepareQuery } from '../storage/prepared-statements'
import type { Tenant } from '../tenancy/tenants'
import { deleteInBatches } from './batch-delete'
import { jobs } from './tables'
import { wake } from './wake'
import type { Lease } from './with-lease'

export type Job = typeof jobs.$inferSelect

export type NewJob = {
  kind: string
  /** The data for the handler, as JSON. */
  payload?: NonNullable<unknown>
  /** Jobs with the same ordering key run one after the other; a job without a key waits for no other. */
  orderingKey?: string
  /** The earliest time to run (ms). */
  at?: number
  /** The trace that the job is a part of, as a traceparent (default: that of the caller). */
  trace?: string | null
  /** An existing job with this id stays as it is, and nothing is added. */
  _id?: string
}

/** The result of an attempt. */
export type JobResult =
  /** Finished. The row is deleted, unless it is `retained` with its outcome. */
  | { state: 'done'; outcome?: unknown; retained?: boolean; effect?: (tx: Tx) => Promise<unknown> }
  /** Runs again at `due` (ms). It does not count as a failure. */
  | { state: 'again'; due: number; payload?: NonNullable<unknown>; effect?: (tx: Tx) => Promise<unknown> }
  /** Could not start, which does not count as an attempt. Runs at `due` (ms). */
  | { state: 'postponed'; due: number }
  | { state: 'failed'; due: number; outcome?: unknown }
  /** Given up. The row stays, to be inspected and repeated by hand. */
  | { state: 'dead'; outcome?: unknown }

const isQueued = (orderingKey: string) => and(eq(jobs.orderingKey, orderingKey), eq(jobs.state, 'waiting'))

const INSERT_JOB = `insert into jobs (_id, kind, lane, payload, state, attempts, due, created, trace)
  values (?, ?, ?, ?, 'waiting', 0, ?, ?, ?) on conflict ("_id") do nothing`

const toRow = (job: NewJob, isBehind: unknown, time = now()) => {
  const {
    _id = Bun.randomUUIDv7(),
    kind,
    payload = {},
    orderingKey = _id,
    at = time,
    trace = currentTraceparent(),
  } = job
  return [_id, kind, orderingKey, JSON.stringify(payload), isBehind ? null : at, time, trace]
}

/** Adds a job, which some process runs at least once after this transaction. */
export async function enqueue({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, job: NewJob) {
  await tx.query(INSERT_JOB, toRow(job, job.orderingKey && (await hasQueued(tx, job.orderingKey))))
  tx.afterCommit(() => wake(tenant))
}

/** Adds many jobs; those with the same ordering key run in the given order. */
export async function enqueueAll({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, newJobs: NewJob[]) {
  const [time, busyKeys] = [now(), new Set<string>()]
  for (const orderingKey of new Set(newJobs.flatMap(({ orderingKey }) => orderingKey ?? [])))
    if (await hasQueued(tx, orderingKey)) busyKeys.add(orderingKey)
  const rows = newJobs.map((job) => {
    const isBehind = job.orderingKey && busyKeys.has(job.orderingKey)
    if (job.orderingKey) busyKeys.add(job.orderingKey)
    return toRow(job, isBehind, time)
  })
  await tx.executeMany(INSERT_JOB, rows)
  tx.afterCommit(() => wake(tenant))
}

// Each has an index of its own, which is used only for exactly this SQL.
const ATTEMPT_FILTERS = { fresh: sql`attempts = 0`, retried: sql`attempts > 0` }

/** `fresh`: never tried. `retried`: the last attempt failed. */
export type AttemptState = keyof typeof ATTEMPT_FILTERS

const prepareDueJobs = (attemptState: AttemptState) =>
  prepareQuery((db) =>
    db
      .select()
      .from(jobs)
      .where(and(lte(jobs.due, sql.placeholder('now')), ATTEMPT_FILTERS[attemptState]))
      .orderBy(asc(jobs.due), asc(jobs.seq))
      .limit(sql.placeholder('limit')),
  )

const prepareNextJob = (attemptState: AttemptState) =>
  prepareFirst((db) =>
    db
      .select({ due: jobs.due })
      .from(jobs)
      .where(and(isNotNull(jobs.due), ATTEMPT_FILTERS[attemptState]))
      .orderBy(asc(jobs.due))
      .limit(1),
  )

const selectDue = { fresh: prepareDueJobs('fresh'), retried: prepareDueJobs('retried') }
const selectNext = { fresh: prepareNextJob('fresh'), retried: prepareNextJob('retried') }

/** Returns the first due jobs, at most one for each ordering key. */
export const findDueJobs = (db: Db, attemptState: AttemptState, limit: number): Promise<Job[]> =>
  selectDue[attemptState](db, { now: now(), limit })

/** Returns when the next job is due (ms), or undefined when there is none. */
export async function findNextDueTime(db: Db): Promise<number | undefined> {
  const rows = [await selectNext.fresh(db, {}), await selectNext.retried(db, {})]
  const moments = rows.flatMap((row) => row?.due ?? [])
  return moments.length ? Math.min(...moments) : undefined
}

const MAX_COUNTED_JOBS = 10_000

const COUNT_JOBS = `select
  (select count(*) from (select 1 from jobs where due is not null and attempts = 0 limit ${MAX_COUNTED_JOBS}) as fresh),
  (select count(*) from (select 1 from jobs where due is not null and attempts > 0 limit ${MAX_COUNTED_JOBS}) as retried),
  (select due from jobs where due is not null and attempts = 0 order by due limit 1),
  (select due from jobs where due is not null and attempts > 0 order by due limit 1)`

/**
 * Counts the jobs that wait for their time, each up to 10,000: never tried, and whose last attempt failed. Jobs behind
 * others of their ordering key are not counted. `oldestDue` is the earliest due time (ms).
 */
export async function countQueue(db: Db): Promise<{ fresh: number; retried: number; oldestDue: number | undefined }> {
  const [[fresh, retried, ...dues] = []] = await db.query(COUNT_JOBS)
  const times = dues.flatMap((due) => (due === null ? [] : Number(due)))
  return { fresh: Number(fresh), retried: Number(retried), oldestDue: times.length ? Math.min(...times) : undefined }
}

const MAX_COUNTED_BEHIND = 1_000

/**
 * Returns the jobs whose last attempt failed, the one that is tried next first, and how many jobs of their ordering
 * keys wait behind them: up to 1,000.
 */
export async function listRetried(db: Db, limit: number): Promise<{ job: Job; behind: number }[]> {
  const rows = await db
    .select()
    .from(jobs)
    .where(and(isNotNull(jobs.due), ATTEMPT_FILTERS.retried))
    .orderBy(asc(jobs.due), asc(jobs.seq))
    .limit(limit)
  return Promise.all(rows.map(async (job) => ({ job, behind: await countBehind(db, job.orderingKey) })))
}

const COUNT_QUEUED = `select count(*) from
  (select 1 from jobs where lane = ? and state = 'waiting' limit ${MAX_COUNTED_BEHIND + 1}) as queued`

const countBehind = async (db: Db, orderingKey: string) =>
  Number((await db.query(COUNT_QUEUED, [orderingKey]))[0]![0]) - 1

/** Makes a job whose last attempt failed due now. Returns false when there is none with this id. */
export async function retryNow({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, _id: string): Promise<boolean> {
  const isRetried = and(eq(jobs._id, _id), isNotNull(jobs.due), ATTEMPT_FILTERS.retried)
  const job = await tx.update(jobs).set({ due: now() }).where(isRetried).returning().get()
  if (job) tx.afterCommit(() => wake(tenant))
  return job !== undefined
}

/** Tells whether a job is due. */
export const hasDueJobs = async (db: Db): Promise<boolean> =>
  ((await findNextDueTime(db)) ?? Number.POSITIVE_INFINITY) <= now()

/**
 * Returns the jobs with a later due time that may have to change with the clock: those of some kinds, those that were
 * created by a clock ahead of ours, and those whose next attempt is later than `lastRetry`.
 */
export function findFutureJobs(db: Db, time: number, kinds: string[], lastRetry: number): Promise<Job[]> {
  const isFailedAhead = and(gt(jobs.attempts, 0), gt(jobs.due, lastRetry))
  return db
    .select()
    .from(jobs)
    .where(and(gt(jobs.due, time), or(inArray(jobs.kind, kinds), gt(jobs.created, time), isFailedAhead)))
}

/** Changes the due times of jobs, if they have not changed since they were read. */
export async function rescheduleJobs(
  tx: Tx,
  changes: { job: Job; next: { due: number; payload?: NonNullable<unknown> } }[],
) {
  for (const { job, next } of changes)
    await tx
      .update(jobs)
      .set({ due: next.due, payload: next.payload ?? job.payload, created: Math.min(job.created, now()) })
      .where(and(eq(jobs.seq, job.seq), eq(jobs.due, job.due ?? next.due)))
}

/** Returns the waiting jobs of an ordering key, in their order. */
export const listQueued = (db: Db, orderingKey: string, limit: number): Promise<Job[]> =>
  db.select().from(jobs).where(isQueued(orderingKey)).orderBy(asc(jobs.seq)).limit(limit)

/** Tells whether an ordering key has a waiting or running job. */
export const hasQueued = async (tx: Tx, orderingKey: string): Promise<boolean> =>
  (await tx.select({ seq: jobs.seq }).from(jobs).where(isQueued(orderingKey)).limit(1)).length > 0

/** Replaces all waiting jobs of an ordering key with one job. */
export async function replaceQueued({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, job: NewJob & { orderingKey: string }) {
  await deleteQueued(tx, job.orderingKey)
  await tx.query(INSERT_JOB, toRow(job, false))
  tx.afterCommit(() => wake(tenant))
}

/** Deletes the waiting jobs of an ordering key. A running job is not retried. */
export const deleteQueued = (tx: Tx, orderingKey: string) => tx.delete(jobs).where(isQueued(orderingKey)).run()

/** Stores the results of jobs of one ordering key, and makes its next job due. */
export async function completeJobs(tx: Tx, results: [Job, JobResult][]) {
  const deletedSeqs: number[] = []
  for (const [{ seq, attempts, payload }, result] of results) {
    const set = (to: Partial<Job>) => tx.update(jobs).set(to).where(eq(jobs.seq, seq))
    if ('effect' in result) await result.effect?.(tx)
    const finished = now()
    if (result.state === 'again') await set({ due: result.due, attempts: 0, payload: result.payload ?? payload })
    else if (result.state === 'postponed') await set({ due: result.due })
    else if (result.state === 'failed')
      await set({ due: result.due, attempts: attempts + 1, outcome: result.outcome ?? null })
    else if (result.state === 'dead' || result.retained)
      await set({ state: result.state, due: null, attempts: attempts + 1, finished, outcome: result.outcome ?? null })
    else deletedSeqs.push(seq)
  }
  if (deletedSeqs.length) await tx.delete(jobs).where(inArray(jobs.seq, deletedSeqs))
  const orderingKey = results[0]?.[0].orderingKey
  if (orderingKey) await promoteNext(tx, orderingKey)
}

/** Repeats a job that was given up or finished, when it is its turn. Returns false when there is no such job. */
export async function requeue({ tenant }: Pick<Tenant, 'tenant'>, tx: Tx, _id: string): Promise<boolean> {
  const requeued = { state: 'waiting' as const, attempts: 0, created: now(), finished: null, due: null }
  const job = await tx.update(jobs).set(requeued).where(eq(jobs._id, _id)).returning().get()
  if (!job) return false
  // It may come before the job that is due now.
  await tx.update(jobs).set({ due: null }).where(isQueued(job.orderingKey))
  await promoteNext(tx, job.orderingKey)
  tx.afterCommit(() => wake(tenant))
  return true
}

const ENDED_JOB_RETENTION_MS = 30 * DAY_MS

/** Deletes jobs that ended a month ago. */
export const removeOld = (tenant: Tenant & Lease) =>
  deleteInBatches(
    tenant,
    jobs,
    jobs.seq,
    and(ne(jobs.state, 'waiting'), lt(jobs.finished, now() - ENDED_JOB_RETENTION_MS)),
  )

/** Makes the first waiting job of an ordering key due. */
async function promoteNext(tx: Tx, orderingKey: string) {
  const [first] = await listQueued(tx, orderingKey, 1)
  if (first?.due === null)
    await tx
      .update(jobs)
      .set({ due: now() })
      .where(and(eq(jobs.seq, first.seq), isNull(jobs.due)))
}
