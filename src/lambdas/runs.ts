import { and, eq, gt, lt, sql } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { DAY_MS, now, toIsoString } from '../core/clock'
import type { HttpContext } from '../core/etag'
import { logError } from '../core/log'
import { parseOptional } from '../core/shapes'
import { deleteInBatches } from '../jobs/batch-delete'
import { emit } from '../jobs/outbox'
import { events } from '../jobs/tables'
import type { Lease } from '../jobs/with-lease'
import { applyPage, type GrowingListQuery, parsePage, respondWithGrowingPage } from '../storage/pagination'
import type { Tx } from '../storage/port'
import { getTenant, type Tenant } from '../tenancy/tenants'
import { getLambda } from './lambdas'
import { runs } from './tables'

const MAX_RUNS_PER_LAMBDA = 200 // runs of a lambda
const MAX_AGE_MS = 30 * DAY_MS
const RUNS_BETWEEN_PRUNES = 50 // runs of a lambda between two looks at how many are kept
const MAX_BATCH_RUNS = 100 // runs that are written at once
const FAILURE_EVENT = 'lambda-failed'
const WEBHOOK_FAILURE_INTERVAL_MS = 60_000 // ms between two events of one lambda's failures at webhooks

export type NewRun = Omit<typeof runs.$inferSelect, '_id'>

const sortable = { _id: runs._id, started: runs.started, duration: runs.duration, status: runs.status }

type Filters = { status?: string; trigger?: string }

/** A page of what became of a lambda's runs, newest first. @throws 404 */
export async function list(
  { db }: Ctx,
  id: string,
  { status, trigger, ...query }: GrowingListQuery & Filters,
  answer: HttpContext,
) {
  await getLambda(db, id)
  const page = parsePage(query, sortable, '-started')
  const where = and(
    eq(runs.lambda, id),
    parseOptional(trigger) ? eq(runs.trigger, trigger!) : undefined,
    parseOptional(status) ? eq(runs.status, Number(status)) : undefined,
  )
  const rows = await applyPage(page, db.select().from(runs).where(and(where, page.after)))
  return respondWithGrowingPage(
    answer,
    page,
    rows,
    () => db.$count(runs, where),
    ({ lambda: _, ...run }) => run,
  )
}

type PendingRun = { run: NewRun; name: string; unattended: boolean }

/** By tenant, what is to be written down; where there is a list, somebody writes. */
const pendingByTenant = new Map<string, PendingRun[]>()
let writtenCount = 0

/**
 * Writes down what became of a run, when it is over and its caller was answered: what comes while others are written is
 * written together. What fails while nobody waits for it, or at a webhook, is told as an event, too.
 */
export async function recordRun({ tenant }: Pick<Tenant, 'tenant'>, run: NewRun, name: string, unattended: boolean) {
  const pendingRun = { run, name, unattended }
  const pending = pendingByTenant.get(tenant)
  if (pending) return void pending.push(pendingRun)
  pendingByTenant.set(tenant, [])
  for (let batch = [pendingRun]; batch.length; batch = pendingByTenant.get(tenant)!.splice(0, MAX_BATCH_RUNS))
    await writeRuns(tenant, batch)
  pendingByTenant.delete(tenant)
}

async function writeRuns(tenant: string, batch: PendingRun[]) {
  try {
    // Not by the caller's own writes, which may belong to a request that is answered already.
    const { write } = await getTenant(tenant)
    await write(async (tx) => {
      await tx.insert(runs).values(batch.map(({ run }) => ({ _id: Bun.randomUUIDv7(), ...run })))
      for (const pendingRun of batch)
        if (++writtenCount % RUNS_BETWEEN_PRUNES === 0)
          await tx.delete(runs).where(exceedsMaxRuns(pendingRun.run.lambda))
      for (const pendingRun of await selectReportable(tx, batch)) await emit({ tenant }, tx, toFailureEvent(pendingRun))
    })
  } catch (cause) {
    logError('LAMBDA_LOG_FAILED', { tenant, lambda: batch[0]!.run.lambda, cause })
  }
}

/**
 * Failures that are told as events: all of runs that nobody waits for, and of webhooks at most one a minute and lambda, as
 * their callers, who may be anybody, can make one fail as often as they like.
 */
async function selectReportable(tx: Tx, batch: PendingRun[]): Promise<PendingRun[]> {
  const failed = batch.filter(
    ({ run: { error, trigger }, unattended }) => error && (unattended || trigger === 'webhook'),
  )
  if (!failed.length) return []
  const { eventName, created, metadata } = events
  const recent = await tx
    .select({ metadata })
    .from(events)
    .where(and(eq(eventName, FAILURE_EVENT), gt(created, now() - WEBHOOK_FAILURE_INTERVAL_MS)))
  const reported = new Set(recent.map(({ metadata }) => metadata.lambda))
  return failed.filter(({ run: { lambda }, unattended }) => {
    if (!unattended && reported.has(lambda)) return false
    reported.add(lambda)
    return true
  })
}

/** What the lambda has thrown is for those who may read its log. */
const toFailureEvent = ({ run, name }: PendingRun) => ({
  source: 'plugins',
  kind: 'lambda',
  eventName: FAILURE_EVENT,
  description: `The lambda "${name}" failed.`,
  metadata: { lambda: run.lambda, name, version: run.version, trigger: run.trigger, code: run.error!.code },
})

/** The runs of a lambda before the newest that are kept. */
const exceedsMaxRuns = (lambda: string) =>
  and(
    eq(runs.lambda, lambda),
    sql`(${runs.started}, ${runs._id}) < (select started, _id from lambda_runs where lambda = ${lambda} order by started desc, _id desc limit 1 offset ${MAX_RUNS_PER_LAMBDA - 1})`,
  )

/** Removes what is too old, and what is too much of each lambda. */
export async function removeOld(tenant: Tenant & Lease) {
  const { db, write, signal } = tenant
  await deleteInBatches(tenant, runs, runs._id, lt(runs.started, toIsoString(now() - MAX_AGE_MS)))
  for (const { lambda } of await db.selectDistinct({ lambda: runs.lambda }).from(runs)) {
    signal.throwIfAborted()
    await write((tx) => tx.delete(runs).where(exceedsMaxRuns(lambda)).run())
  }
}
