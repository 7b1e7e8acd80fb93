import { DAY_MS, now } from '../core/clock'
import { extensions, registry } from '../core/extension'
import { logError } from '../core/log'
import { TooManyCalls } from '../core/outbound-calls'
import type { Tx } from '../storage/port'
import { FairSemaphore } from '../tenancy/fair-semaphore'
import type { Tenant } from '../tenancy/tenants'
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

/** How jobs of a kind are done. What it did may be done once more: a process can die before it has written it down. */
export type JobHandler = {
  /** Throws when it has to be tried again. */
  run(tenant: Tenant & Lease, job: Job): Promise<JobResult>
  /** How long it is tried before it is given up, in ms. */
  retryFor?: number
  /** When a job that waits comes next by the clock as it is now: for those whose time follows from the clock alone. */
  nextTime?(job: Job): { due: number; payload: NonNullable<unknown> } | undefined
  /** Writes down what attempts came to in the transaction in which they end: of one lane, in their order. */
  onSettled?(tenant: Tenant, tx: Tx, endings: [Job, JobResult][]): Promise<unknown>
}

/** Why an attempt failed, for those who look at the job, and whether another can help. */
export class JobError extends Error {
  constructor(
    message: string,
    readonly details: { outcome?: unknown; permanent?: boolean /** ms */; retryAfter?: number } = {},
  ) {
    super(message)
  }
}

/** Something besides jobs that is looked after at each wake: it makes jobs of what it finds. */
export type JobSource = { hasPending(tenant: Tenant): Promise<boolean>; collect(tenant: Tenant & Lease): Promise<void> }

/** Lanes that are begun at once: of one tenant, which is an eighth of all, and of all tenants. */
const MAX_STARTING_LANES_PER_TENANT = { fresh: 16, retried: 8 }
const MAX_STARTING_LANES_TOTAL = { fresh: 128, retried: 64 }
const MAX_LANES_PER_TENANT = 64 // of one tenant
const SLOW_LANE_MS = 1_000 // ms after which a lane only waits for somebody else, and others begin in its place
const JOBS_PER_BATCH = 50 // jobs of one lane between two looks at what else is due
const LANE_TURN_MS = 1_000 // ms after which others get their turn, though there may be more in the lane
const SOURCE_POLL_INTERVAL_MS = 200 // ms between two looks at feeds when nobody told of news
const RESULT_FLUSH_INTERVAL_MS = 50 // ms after which it is written down what was done
const DEFAULT_RETRY_FOR_MS = 3 * DAY_MS
const FIRST_RETRY_DELAY_MS = 1_000
const MAX_RETRY_DELAY_MS = 3_600_000

/** Handlers of jobs, by the kind that is stored with a job. */
export const jobHandlers = registry<JobHandler>('job handlers')
export const jobSources = extensions<JobSource>('job sources')
// Lanes whose last attempt failed have places of their own, so none of them is in the way of those that work.
const laneSemaphores = {
  fresh: new FairSemaphore(MAX_STARTING_LANES_TOTAL.fresh, MAX_STARTING_LANES_PER_TENANT.fresh),
  retried: new FairSemaphore(MAX_STARTING_LANES_TOTAL.retried, MAX_STARTING_LANES_PER_TENANT.retried),
}
const ATTEMPT_STATES = ['fresh', 'retried'] as const

/** Whether there is anything to do at a tenant now. */
export async function hasWork(tenant: Tenant): Promise<boolean> {
  if (await hasDueJobs(tenant.db)) return true
  for (const source of jobSources()) if (await source.hasPending(tenant)) return true
  return false
}

/**
 * Does all that is due at a tenant, until nothing is; `woken` resolves when there may be more. Answers how many jobs it
 * tried.
 */
export async function drainJobs(tenant: Tenant & Lease, woken: () => Promise<void>): Promise<number> {
  const running = new Map<string, Promise<void>>()
  const starting = { fresh: 0, retried: 0 }
  let laneFreed = Promise.withResolvers<void>()
  let [attemptCount, laneFailure] = [0, undefined as { error: unknown } | undefined]
  const startLane = (head: Job, attemptState: AttemptState) => {
    const work = async () => {
      starting[attemptState]++
      let lane = Promise.resolve(0)
      const start = () => {
        lane = runLane(tenant, head)
        return waitUntilSlow(lane)
      }
      const slow = await laneSemaphores[attemptState].run(tenant, start).finally(() => starting[attemptState]--)
      if (slow) laneFreed.resolve()
      const count = await lane
      attemptCount += count
    }
    const ended = work()
      .catch((error) => {
        laneFailure ??= { error }
      })
      .finally(() => running.delete(head.lane))
    running.set(head.lane, ended)
  }
  let [hasNews, collectedAt] = [true, 0]
  let sourceFailure: { error: unknown } | undefined
  // A feed that fails is told of in the end: jobs that are there are none of its business.
  const collectAll = async () => {
    for (const source of jobSources()) await source.collect(tenant)
  }
  for (;;) {
    const nextWake = woken().then(() => {
      hasNews = true
    })
    if (!laneFailure && !tenant.signal.aborted) {
      // Other processes wake only themselves.
      if (!sourceFailure && (hasNews || performance.now() - collectedAt > SOURCE_POLL_INTERVAL_MS)) {
        hasNews = false
        await collectAll().catch((error) => {
          sourceFailure = { error }
        })
        collectedAt = performance.now()
      }
      for (const attemptState of ATTEMPT_STATES) {
        const freePlaces = () =>
          Math.min(
            MAX_STARTING_LANES_PER_TENANT[attemptState] - starting[attemptState],
            MAX_LANES_PER_TENANT - running.size,
          )
        // Jobs of lanes that are running are due, too.
        const heads = freePlaces() > 0 ? await findDueJobs(tenant.db, attemptState, freePlaces() + running.size) : []
        for (const head of heads) if (freePlaces() > 0 && !running.has(head.lane)) startLane(head, attemptState)
      }
    }
    if (!running.size) break
    await Promise.race([...running.values(), nextWake, laneFreed.promise])
    laneFreed = Promise.withResolvers<void>()
  }
  const failure = laneFailure ?? sourceFailure
  if (failure) throw failure.error
  return attemptCount
}

/** Waits until a lane has ended, or is slow, which is answered. */
async function waitUntilSlow(lane: Promise<unknown>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(resolve, SLOW_LANE_MS, true).unref()
  return Promise.race([lane.then(() => false), promise]).finally(() => clearTimeout(timer))
}

/**
 * Has what waits wait no longer than it should by the clock as it is now: while that was ahead, times were noted that
 * may be years away.
 */
export async function rescheduleByClock(tenant: Tenant): Promise<void> {
  const time = now()
  const timed = [...jobHandlers()].flatMap(([kind, { nextTime }]) => (nextTime ? [kind] : []))
  const next = (job: Job) => {
    const own = jobHandlers().get(job.kind)?.nextTime
    if (own) return own(job)
    return job.due === null ? undefined : { due: time + Math.max(0, job.due - job.created) }
  }
  const changes = (await findFutureJobs(tenant.db, time, timed)).flatMap((job) => {
    const nextRun = next(job)
    return nextRun && job.due !== null && nextRun.due < job.due ? [{ job, next: nextRun }] : []
  })
  if (changes.length) await tenant.write((tx) => rescheduleJobs(tx, changes))
}

export const nextRunAt = ({ db }: Tenant) => findNextDueTime(db)

/** Does the jobs of a lane in their order, as many as are good to be done without looking around; answers how many. */
async function runLane(tenant: Tenant & Lease, head: Job): Promise<number> {
  const jobs = head.lane === head._id ? [head] : await listQueued(tenant.db, head.lane, JOBS_PER_BATCH)
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
    const result = await runJob(tenant, job)
    if (!result) break
    attemptCount++
    // What has an effect is written down alone, so that nothing else fails with it.
    if ('effect' in result) await flushResults()
    results.push([job, result])
    if ('effect' in result || performance.now() - flushedAt > RESULT_FLUSH_INTERVAL_MS) await flushResults()
    // What comes next in the lane may depend on it.
    if (result.state !== 'done' || performance.now() - startedAt > LANE_TURN_MS) break
  }
  await flushResults()
  return attemptCount
}

/** Nothing when it was cut off by the loss of the lease: then it is somebody else's. */
async function runJob(tenant: Tenant & Lease, job: Job): Promise<JobResult | undefined> {
  const handler = jobHandlers().get(job.kind)
  try {
    if (!handler) throw new JobError(`This version has no handler for jobs of the kind "${job.kind}".`)
    return await handler.run(tenant, job)
  } catch (error) {
    if (tenant.signal.aborted || error instanceof LeaseLost) return
    return toFailedResult(tenant, job, error, handler?.retryFor ?? DEFAULT_RETRY_FOR_MS)
  }
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

/** ms until the next attempt: doubling, and never quite at the same time as everybody else's. */
const retryDelay = (attempts: number) =>
  Math.round(
    Math.min(MAX_RETRY_DELAY_MS / 1.25, FIRST_RETRY_DELAY_MS * 2 ** Math.min(attempts, 30)) * (1 + Math.random() / 4),
  )
