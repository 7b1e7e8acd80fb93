import { and, eq, gt, lt, sql } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { DAY, iso, now } from '../../core/clock'
import type { Answer } from '../../core/etag'
import { report } from '../../core/log'
import { given } from '../../core/shapes'
import type { Lease } from '../../jobs/holding'
import { emit } from '../../jobs/outbox'
import { removeInSlices } from '../../jobs/removal'
import { events } from '../../jobs/tables'
import { answerGrowingPage, type GrowingListing, paged, pageOf } from '../../storage/lists'
import type { Tx } from '../../storage/port'
import { type Tenant, tenantNamed } from '../../tenancy/tenants'
import { named } from './lambdas'
import { runs } from './tables'

const KEPT = 200 // runs of a lambda
const AGE = 30 * DAY
const OFTEN = 50 // runs of a lambda between two looks at how many are kept
const TOGETHER = 100 // runs that are written at once
const FAILURE = 'lambda-failed'
const QUIET = 60_000 // ms between two events of one lambda's failures at webhooks

export type Run = Omit<typeof runs.$inferSelect, '_id'>

const sortable = { _id: runs._id, started: runs.started, duration: runs.duration, status: runs.status }

type Filters = { status?: string; trigger?: string }

/** A page of what became of a lambda's runs, newest first. @throws 404 */
export async function list(
  { db }: Ctx,
  id: string,
  { status, trigger, ...query }: GrowingListing & Filters,
  answer: Answer,
) {
  await named(db, id)
  const page = pageOf(query, sortable, '-started')
  const where = and(
    eq(runs.lambda, id),
    given(trigger) ? eq(runs.trigger, trigger!) : undefined,
    given(status) ? eq(runs.status, Number(status)) : undefined,
  )
  const rows = await paged(page, db.select().from(runs).where(and(where, page.after)))
  return answerGrowingPage(
    answer,
    page,
    rows,
    () => db.$count(runs, where),
    ({ lambda: _, ...run }) => run,
  )
}

type Noted = { run: Run; name: string; unattended: boolean }

/** By tenant, what is to be written down; where there is a list, somebody writes. */
const waiting = new Map<string, Noted[]>()
let count = 0

/**
 * Writes down what became of a run, when it is over and its caller was answered: what comes while others are written is
 * written together. What fails while nobody waits for it, or at a webhook, is told as an event, too.
 */
export async function note({ tenant }: Pick<Tenant, 'tenant'>, run: Run, name: string, unattended: boolean) {
  const one = { run, name, unattended }
  const others = waiting.get(tenant)
  if (others) return void others.push(one)
  waiting.set(tenant, [])
  for (let some = [one]; some.length; some = waiting.get(tenant)!.splice(0, TOGETHER)) await written(tenant, some)
  waiting.delete(tenant)
}

async function written(tenant: string, some: Noted[]) {
  try {
    // Not by the caller's own writes, which may belong to a request that is answered already.
    const { write } = await tenantNamed(tenant)
    await write(async (tx) => {
      await tx.insert(runs).values(some.map(({ run }) => ({ _id: Bun.randomUUIDv7(), ...run })))
      for (const one of some) if (++count % OFTEN === 0) await tx.delete(runs).where(beyond(one.run.lambda))
      for (const one of await worthTelling(tx, some)) await emit({ tenant }, tx, failure(one))
    })
  } catch (cause) {
    report('LAMBDA_LOG_FAILED', { tenant, lambda: some[0]!.run.lambda, cause })
  }
}

/**
 * Failures that are told as events: all of runs that nobody waits for, and of webhooks at most one a minute and lambda, as
 * their callers, who may be anybody, can make one fail as often as they like.
 */
async function worthTelling(tx: Tx, some: Noted[]): Promise<Noted[]> {
  const failed = some.filter(
    ({ run: { error, trigger }, unattended }) => error && (unattended || trigger === 'webhook'),
  )
  if (!failed.length) return []
  const { eventName, created, metadata } = events
  const recent = await tx
    .select({ metadata })
    .from(events)
    .where(and(eq(eventName, FAILURE), gt(created, now() - QUIET)))
  const told = new Set(recent.map(({ metadata }) => metadata.lambda))
  return failed.filter(({ run: { lambda }, unattended }) => {
    if (!unattended && told.has(lambda)) return false
    told.add(lambda)
    return true
  })
}

/** What the lambda has thrown is for those who may read its log. */
const failure = ({ run, name }: Noted) => ({
  source: 'plugins',
  kind: 'lambda',
  eventName: FAILURE,
  description: `The lambda "${name}" failed.`,
  metadata: { lambda: run.lambda, name, version: run.version, trigger: run.trigger, code: run.error!.code },
})

/** The runs of a lambda before the newest that are kept. */
const beyond = (lambda: string) =>
  and(
    eq(runs.lambda, lambda),
    sql`(${runs.started}, ${runs._id}) < (select started, _id from lambda_runs where lambda = ${lambda} order by started desc, _id desc limit 1 offset ${KEPT - 1})`,
  )

/** Removes what is too old, and what is too much of each lambda. */
export async function removeOld(tenant: Tenant & Lease) {
  const { db, write, signal } = tenant
  await removeInSlices(tenant, runs, runs._id, lt(runs.started, iso(now() - AGE)))
  for (const { lambda } of await db.selectDistinct({ lambda: runs.lambda }).from(runs)) {
    signal.throwIfAborted()
    await write((tx) => tx.delete(runs).where(beyond(lambda)).run())
  }
}
