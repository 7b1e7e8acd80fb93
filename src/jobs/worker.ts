import { DAY_MS, HOUR_MS, now } from '../core/clock'
import { extensions, registry } from '../core/extension'
import { FairShare } from '../core/fair-share'
import { logError } from '../core/log'
import { TooManyCalls } from '../core/outbound-calls'
import { parseRetryAfter } from '../core/retry-after'
import { parseTrace, runInSpan, runInTrace } from '../core/trace'
import type { Db, Tx } from '../storage/port'
import { isOutgoingHeld, type Tenant } from '../tenancy/tenants'
import { LeaseLost } from './leases'
import {
  type AttemptState,
  completeJobs,
  findDueJobs,
  findFutureJobs,
  findNextDueTime,
  hasDueJobs,
  type Job,
  type JobResult,
  listQueued,
  rescheduleJobs,
} from './queue'
import type { Lease } from './with-lease'

/**
 * Runs the jobs of a kind. A job may run once more than it finished, because a process can die before it has stored the
 * result.
 */
export type JobHandler = {
  /** @throws when the job has to be tried again */
  run(tenant: Tenant & Lease, job: Job): Promise<JobResult>
  /** Whether it acts outside. Then it waits while the tenant is a copy that must not. */
  isOutgoing?: boolean
  /** How long a failing job is retried before it is given up, in ms. */
  retryFor?: number
  /** Returns when a waiting job is due by the current clock, for jobs whose time follows from the clock alone. */
  nextTime?(job: Job & { due: number }): { due: number; payload: NonNullable<unknown> } | undefined
  /** Stores the results of attempts in the transaction that ends them: those of one ordering key, in their order. */
  onSettled?(tenant: Tenant, tx: Tx, endings: [Job, JobResult][]): Promise<unknown>
  /** Returns the record that a job works for, for people who see that it fails. */
  findSubject?(db: Db, job: Job): Promise<JobSubject | undefined>
}

/** A record that has jobs, with its name for people, if it has one. */
export type JobSubject = { kind: 'plugin' | 'integration' | 'mail'; _id: string; name: string | null }

/** Why an attempt failed, for people who inspect the job, and whether to retry it. */
export class JobError extends Error {
  constructor(
    message: string,
    readonly details: { outcome?: unknown; permanent?: boolean /** ms */; retryAfter?: number } = {},
  ) {
    super(message)
  }
}

/** Returns how long an answer asks to wait, for the details of a `JobError`: at most an hour. */
export function readRetryAfter(headers: Headers): { retryAfter?: number } {
  const wait = parseRetryAfter(headers.get('retry-after'))
  return wait ? { retryAfter: Math.min(wait, MAX_RETRY_DELAY_MS) } : {}
}

/** Something besides the queue that is checked at each wake. It makes jobs of what it finds. */
export type JobSource = { hasPending(tenant: Tenant): Promise<boolean>; collect(tenant: Tenant & Lease): Promise<void> }

/** How many ordering keys are started at once. A tenant gets an eighth of the total. */
const MAX_STARTING_PER_TENANT = { fresh: 16, retried: 8 }
const MAX_STARTING_TOTAL = { fresh: 128, retried: 64 }
const MAX_RUNNING_PER_TENANT = 64 // ordering keys
const SLOW_JOB_MS = 1_000 // after so long a job probably waits for another server, and others start in its place
const JOBS_PER_BATCH = 50 // jobs of one ordering key before other due jobs are looked up
const TURN_MS = 1_000 // after so long other ordering keys get their turn, even if this one has more jobs
const SOURCE_POLL_INTERVAL_MS = 200 // between two checks of job sources without a wake
const RESULT_FLUSH_INTERVAL_MS = 50 // results are stored after so long at the latest
const DEFAULT_RETRY_FOR_MS = 3 * DAY_MS
const FIRST_RETRY_DELAY_MS = 1_000
const MAX_RETRY_DELAY_MS = HOUR_MS
const HELD_RETRY_MS = 60_000 // between two looks whether a copy may act outside now

/** Handlers of jobs, by the kind that is stored with a job. */
export const jobHandlers = registry<JobHandler>('job handlers')
export const jobSources = extensions<JobSource>('job sources')
// Jobs whose last attempt failed have places of their own, so that they do not delay the others.
const startShares = { fresh: createStartShare('fresh'), retried: createStartShare('retried') }
const ATTEMPT_STATES = ['fresh', 'retried'] as const

function createStartShare(attemptState: AttemptState) {
  const limits = { perTenant: MAX_STARTING_PER_TENANT[attemptState] }
  return new FairShare({
    running: { total: MAX_STARTING_TOTAL[attemptState], ...limits },
    waiting: limits,
    turnMs: 100,
  })
}

/** What became of the attempts of this process at jobs, by their kind. */
export const jobStatistics = new Map<string, { seconds: number; results: Map<JobResult['state'], number> }>()

function countAttempt(job: Job, { state }: JobResult, ms: number) {
  // Kinds of jobs that no area knows come from other versions.
  const kind = jobHandlers().has(job.kind) ? job.kind : 'unknown'
  const { seconds, results } = jobStatistics.get(kind) ?? { seconds: 0, results: new Map() }
  jobStatistics.set(kind, { seconds: seconds + ms / 1_000, results: results.set(state, (results.get(state) ?? 0) + 1) })
}

/** Tells whether a tenant has due jobs, or a job source has work. */
export async function hasWork(tenant: Tenant): Promise<boolean> {
  if (await hasDueJobs(tenant.db)) return true
  for (const source of jobSources()) if (await source.hasPending(tenant)) return true
  return false
}

/**
 * Runs everything that is due at a tenant, until nothing is. `woken` resolves when there may be more. Returns the
 * number of attempts.
 * @throws the first error of the queue, a job source or the storing of results, once no job is running
 */
export async function drainJobs(tenant: Tenant & Lease, woken: () => Promise<void>): Promise<number> {
  const running = new Map<string, Promise<void>>()
  const starting = { fresh: 0, retried: 0 }
  let placeFreed = Promise.withResolvers<void>()
  let [attemptCount, failure] = [0, undefined as { error: unknown } | undefined]
  const start = (head: Job, attemptState: AttemptState) => {
    const work = async () => {
      starting[attemptState]++
      let turn = Promise.resolve(0)
      const runUntilSlow = () => {
        turn = runTurn(tenant, head)
        return waitUntilSlow(turn)
      }
      const isSlow = await startShares[attemptState]
        .run({ tenant: tenant.tenant, caller: head.kind }, runUntilSlow)
        .finally(() => starting[attemptState]--)
      if (isSlow) placeFreed.resolve()
      const count = await turn
      attemptCount += count
    }
    const ended = work()
      .catch((error) => {
        failure ??= { error }
      })
      .finally(() => running.delete(head.orderingKey))
    running.set(head.orderingKey, ended)
  }
  const startDue = async () => {
    for (const attemptState of ATTEMPT_STATES) {
      const freePlaces = () =>
        Math.min(MAX_STARTING_PER_TENANT[attemptState] - starting[attemptState], MAX_RUNNING_PER_TENANT - running.size)
      // Due jobs include those that are running.
      const heads = freePlaces() > 0 ? await findDueJobs(tenant.db, attemptState, freePlaces() + running.size) : []
      for (const head of heads) if (freePlaces() > 0 && !running.has(head.orderingKey)) start(head, attemptState)
    }
  }
  let [hasNews, collectedAt] = [true, 0]
  let sourceFailure: { error: unknown } | undefined
  // A failed job source is reported in the end: it must not stop the existing jobs.
  const collectAll = async () => {
    for (const source of jobSources()) await source.collect(tenant)
  }
  for (;;) {
    const nextWake = woken().then(() => {
      hasNews = true
    })
    if (!failure && !tenant.signal.aborted) {
      // Processes wake only themselves, so sources are also polled.
      if (!sourceFailure && (hasNews || performance.now() - collectedAt > SOURCE_POLL_INTERVAL_MS)) {
        hasNews = false
        await collectAll().catch((error) => {
          sourceFailure = { error }
        })
        collectedAt = performance.now()
      }
      // Running jobs are waited for: with the lease released, another process would run them as well.
      await startDue().catch((error) => {
        failure ??= { error }
      })
    }
    if (!running.size) break
    await Promise.race([...running.values(), nextWake, placeFreed.promise])
    placeFreed = Promise.withResolvers<void>()
  }
  const firstFailure = failure ?? sourceFailure
  if (firstFailure) throw firstFailure.error
  return attemptCount
}

/** Waits until a turn has ended or is slow. Returns whether it is slow. */
async function waitUntilSlow(turn: Promise<unknown>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(resolve, SLOW_JOB_MS, true).unref()
  return Promise.race([turn.then(() => false), promise]).finally(() => clearTimeout(timer))
}

/**
 * Adjusts due times to the current clock, and to the rules of zones: a clock that was ahead may have set times that are
 * years away.
 */
export async function rescheduleByClock(tenant: Tenant): Promise<void> {
  const time = now()
  const timed = [...jobHandlers()].flatMap(([kind, { nextTime }]) => (nextTime ? [kind] : []))
  const next = (job: Job & { due: number }) => {
    const own = jobHandlers().get(job.kind)?.nextTime
    if (own) return own(job)
    return { due: time + (job.created > time ? Math.max(0, job.due - job.created) : retryDelay(job.attempts)) }
  }
  const future = await findFutureJobs(tenant.db, time, timed, time + MAX_RETRY_DELAY_MS)
  const changes = future.flatMap((job) => {
    const { due } = job
    const nextRun = due !== null && next({ ...job, due })
    return nextRun && nextRun.due !== due ? [{ job, next: nextRun }] : []
  })
  if (changes.length) await tenant.write((tx) => rescheduleJobs(tx, changes))
}

export const nextRunAt = ({ db }: Tenant) => findNextDueTime(db)

/** Runs the jobs of an ordering key in their order, for one turn. Returns the number of attempts. */
async function runTurn(tenant: Tenant & Lease, head: Job): Promise<number> {
  const { _id, orderingKey } = head
  const jobs = orderingKey === _id ? [head] : await listQueued(tenant.db, orderingKey, JOBS_PER_BATCH)
  let results: [Job, JobResult][] = []
  const startedAt = performance.now()
  let flushedAt = startedAt
  const flushResults = async () => {
    const pending = results
    results = []
    flushedAt = performance.now()
    if (!pending.length) return
    await tenant.write(async (tx) => {
      await completeJobs(tx, pending)
      for (const [kind, ofKind] of Map.groupBy(pending, ([{ kind }]) => kind))
        await jobHandlers().get(kind)?.onSettled?.(tenant, tx, ofKind)
    })
  }
  let attemptCount = 0
  for (const job of jobs) {
    if (tenant.signal.aborted) break
    const began = performance.now()
    const result = await runJob(tenant, job)
    if (!result) break
    countAttempt(job, result, performance.now() - began)
    attemptCount++
    // A result with an effect is stored alone, so that its failure does not affect others.
    if ('effect' in result) await flushResults()
    results.push([job, result])
    if ('effect' in result || performance.now() - flushedAt > RESULT_FLUSH_INTERVAL_MS) await flushResults()
    // The next job may depend on this one.
    if (result.state !== 'done' || performance.now() - startedAt > TURN_MS) break
  }
  await flushResults()
  return attemptCount
}

/** Runs a job. Returns undefined when the loss of the lease interrupted it: then another process runs it. */
async function runJob(tenant: Tenant & Lease, job: Job): Promise<JobResult | undefined> {
  const handler = jobHandlers().get(job.kind)
  try {
    if (!handler) throw new JobError(`This version has no handler for jobs of the kind "${job.kind}".`)
    if (handler.isOutgoing && (await isOutgoingHeld(tenant.tenant)))
      return { state: 'postponed', due: now() + HELD_RETRY_MS }
    return await runInJobTrace(tenant, job, () => handler.run(tenant, job))
  } catch (error) {
    if (tenant.signal.aborted || error instanceof LeaseLost) return
    return toFailedResult(tenant, job, error, handler?.retryFor ?? DEFAULT_RETRY_FOR_MS)
  }
}

/** Runs a job as a part of the trace of the request that caused it, if there is one. */
function runInJobTrace<T>({ tenant }: Tenant, job: Job, work: () => Promise<T>): Promise<T> {
  const describe = () => ({ 'atoll.tenant': tenant, 'atoll.job.kind': job.kind, 'atoll.job.attempt': job.attempts + 1 })
  return runInTrace(parseTrace(job.trace), () => runInSpan(`job ${job.kind}`, 'consumer', describe, work))
}

function toFailedResult({ tenant }: Tenant, job: Job, error: unknown, retryFor: number): JobResult {
  const isJobError = error instanceof JobError
  const { outcome, permanent, retryAfter = retryDelay(job.attempts) } = isJobError ? error.details : {}
  if (!isJobError && !(error instanceof TooManyCalls))
    logError('JOB_FAILED', { tenant, kind: job.kind, job: job._id, cause: error })
  const visibleOutcome = outcome ?? {
    message: isJobError || error instanceof TooManyCalls ? error.message : 'It failed.',
  }
  const time = now()
  if (permanent || time - job.created >= retryFor) return { state: 'dead', outcome: visibleOutcome }
  return { state: 'failed', due: time + retryAfter, outcome: visibleOutcome }
}

/** Returns the ms until the next attempt: doubled each time, with jitter. */
const retryDelay = (attempts: number) =>
  Math.round(
    Math.min(MAX_RETRY_DELAY_MS / 1.25, FIRST_RETRY_DELAY_MS * 2 ** Math.min(attempts, 30)) * (1 + Math.random() / 4),
  )
