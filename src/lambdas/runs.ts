import { and, count, eq, gt, lt, max, sql } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { logError } from '../core/log'
import { parseOptional } from '../core/shapes'
import { readFairly } from '../entities/query/fair-reads'
import { deleteInBatches } from '../jobs/batch-delete'
import { emit } from '../jobs/outbox'
import { events } from '../jobs/tables'
import type { Lease } from '../jobs/with-lease'
import { addDailyUse, readDailyUse } from '../limits/daily-use'
import { applyPage, type GrowingListQuery, parsePage, toGrowingListPage } from '../storage/pagination'
import type { Db, Tx } from '../storage/port'
import { getTenant, type Tenant } from '../tenancy/tenants'
import { getLambda } from './lambdas'
import type { RunSummary } from './shapes'
import { lambdas, runs } from './tables'

const MAX_RUNS_PER_LAMBDA = 200
const MAX_AGE_MS = 30 * DAY_MS
const RUNS_BETWEEN_PRUNES = 50 // recorded runs between two deletions of surplus runs
const MAX_BATCH_RUNS = 100 // runs per transaction
const FAILURE_EVENT = 'lambda-failed'
const WEBHOOK_FAILURE_INTERVAL_MS = 60_000 // ms between two failure events of one lambda's webhook runs

export type NewRun = Omit<typeof runs.$inferSelect, '_id'>

const sortable = { _id: runs._id, started: runs.started, duration: runs.duration, status: runs.status }

type Filters = { status?: string; trigger?: string }

/** Returns a page of the recorded runs of a lambda, newest first. @throws 404 LAMBDA_NOT_FOUND */
export async function list({ db }: Ctx, id: string, { status, trigger, ...query }: GrowingListQuery & Filters) {
  await getLambda(db, id)
  const page = parsePage(query, sortable, '-started')
  const where = and(
    eq(runs.lambda, id),
    parseOptional(trigger) ? eq(runs.trigger, trigger!) : undefined,
    parseOptional(status) ? eq(runs.status, Number(status)) : undefined,
  )
  const rows = await applyPage(page, db.select().from(runs).where(and(where, page.after)))
  return toGrowingListPage(
    page,
    rows,
    () => db.$count(runs, where),
    ({ lambda: _, ...run }) => run,
  )
}

/**
 * Returns how many runs and failures the log has of each lambda that ever ran, and when the last ones were. Each lambda
 * is a statement of its own, so that other work gets a turn between them.
 * @throws 503 BUSY
 */
export const summarize = (ctx: Ctx, request: Request) =>
  readFairly(ctx, request, async (db) => {
    const summaries: RunSummary[] = []
    for (const { _id } of await db.select({ _id: lambdas._id }).from(lambdas).orderBy(lambdas._id)) {
      const { lastRun, ...counts } = (await countRuns(db, _id))!
      if (lastRun) summaries.push({ lambda: _id, lastRun, ...counts })
    }
    return summaries
  })

function countRuns(db: Db, lambda: string) {
  const failed = sql`case when ${runs.error} is not null then ${runs.started} end`
  return db
    .select({
      runs: count(),
      failures: count(failed),
      lastRun: max(runs.started),
      lastFailure: sql<string | null>`max(${failed})`.mapWith(runs.started),
    })
    .from(runs)
    .where(eq(runs.lambda, lambda))
    .get()
}

const DAILY_USE_KIND = 'lambda-ms'

/** For how long (ms) the runs of a tenant took that are still to be written. */
const unwrittenMsByTenant = new Map<string, number>()

/** Returns for how many seconds lambdas have run today (UTC). */
export async function countSecondsToday(tenant: Tenant): Promise<number> {
  // Taken first: a run that is written during the read counts twice for a moment rather than not at all.
  const unwritten = unwrittenMsByTenant.get(tenant.tenant) ?? 0
  return ((await readDailyUse(tenant, DAILY_USE_KIND)) + unwritten) / 1_000
}

const sumDurations = (batch: PendingRun[]) => batch.reduce((sum, { run }) => sum + run.duration, 0)

type PendingRun = { run: NewRun; name: string }

/** The runs to be written, by tenant. A tenant has a list while `recordRun` is writing its runs. */
const pendingByTenant = new Map<string, PendingRun[]>()
let writtenCount = 0

/**
 * Records a finished run after its caller was answered. Runs that arrive during a write are written together. A failure
 * of a webhook is also emitted as an event; of runs in the background, `run-job.ts` emits those that are given up.
 */
export async function recordRun({ tenant }: Pick<Tenant, 'tenant'>, run: NewRun, name: string) {
  const pendingRun = { run, name }
  addUnwritten(tenant, run.duration)
  const pending = pendingByTenant.get(tenant)
  if (pending) return void pending.push(pendingRun)
  pendingByTenant.set(tenant, [])
  for (let batch = [pendingRun]; batch.length; batch = pendingByTenant.get(tenant)!.splice(0, MAX_BATCH_RUNS))
    await writeRuns(tenant, batch)
  pendingByTenant.delete(tenant)
}

async function writeRuns(tenant: string, batch: PendingRun[]) {
  try {
    // The caller's `write` may belong to a request that has been answered.
    const { write } = await getTenant(tenant)
    await write(async (tx) => {
      await tx.insert(runs).values(batch.map(({ run }) => ({ _id: Bun.randomUUIDv7(), ...run })))
      await addDailyUse(tx, DAILY_USE_KIND, sumDurations(batch))
      for (const pendingRun of batch)
        if (++writtenCount % RUNS_BETWEEN_PRUNES === 0)
          await tx.delete(runs).where(exceedsMaxRuns(pendingRun.run.lambda))
      for (const pendingRun of await selectReportable(tx, batch)) await emit({ tenant }, tx, toFailureEvent(pendingRun))
    })
  } catch (cause) {
    logError('LAMBDA_LOG_FAILED', { tenant, lambda: batch[0]!.run.lambda, cause })
  } finally {
    addUnwritten(tenant, -sumDurations(batch))
  }
}

function addUnwritten(tenant: string, ms: number) {
  const sum = (unwrittenMsByTenant.get(tenant) ?? 0) + ms
  if (sum) unwrittenMsByTenant.set(tenant, sum)
  else unwrittenMsByTenant.delete(tenant)
}

/**
 * Returns the failures to emit as events: at most one per minute and lambda, and only of webhooks, because an anonymous
 * caller can make a webhook fail at any rate.
 */
async function selectReportable(tx: Tx, batch: PendingRun[]): Promise<PendingRun[]> {
  const failed = batch.filter(({ run: { error, trigger } }) => error && trigger === 'webhook')
  if (!failed.length) return []
  const { eventName, created, metadata } = events
  const recent = await tx
    .select({ metadata })
    .from(events)
    .where(and(eq(eventName, FAILURE_EVENT), gt(created, now() - WEBHOOK_FAILURE_INTERVAL_MS)))
  const reported = new Set(recent.map(({ metadata }) => metadata.lambda))
  return failed.filter(({ run: { lambda } }) => !reported.has(lambda) && reported.add(lambda))
}

/** The event does not contain the thrown error, which only readers of the log may see. */
const toFailureEvent = ({ run, name }: PendingRun) => ({
  source: 'plugins',
  kind: 'lambda',
  eventName: FAILURE_EVENT,
  description: `The lambda "${name}" failed.`,
  metadata: { lambda: run.lambda, name, version: run.version, trigger: run.trigger, code: run.error!.code },
})

/** Returns the condition of the runs of a lambda beyond the newest 200. */
const exceedsMaxRuns = (lambda: string) =>
  and(
    eq(runs.lambda, lambda),
    sql`(${runs.started}, ${runs._id}) < (select started, _id from lambda_runs where lambda = ${lambda} order by started desc, _id desc limit 1 offset ${MAX_RUNS_PER_LAMBDA - 1})`,
  )

/** Removes runs older than 30 days, and all but the newest 200 of each lambda. */
export async function removeOld(tenant: Tenant & Lease) {
  const { db, write, signal } = tenant
  await deleteInBatches(tenant, runs, runs._id, lt(runs.started, toIsoString(now() - MAX_AGE_MS)))
  for (const { lambda } of await db.selectDistinct({ lambda: runs.lambda }).from(runs)) {
    signal.throwIfAborted()
    await write((tx) => tx.delete(runs).where(exceedsMaxRuns(lambda)).run())
  }
}
