import { DAY, now } from '../core/clock'
import { report } from '../core/log'
import { TooManyCalls } from '../core/outgoing-calls'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { Turns } from '../tenancy/turns'
import type { Lease } from './holding'
import { LeaseLost } from './leases'
import {
  due,
  type Ending,
  isDue,
  type Job,
  nextDue,
  reschedule,
  settle,
  type Tried,
  waiting,
  waitingLater,
} from './queue'

/** How jobs of a kind are done. What it did may be done once more: a process can die before it has written it down. */
export type Work = {
  /** Throws when it has to be tried again. */
  run(tenant: Tenant & Lease, job: Job): Promise<Ending>
  /** How long it is tried before it is given up, in ms. */
  patience?: number
  /** When a job that waits comes next by the clock as it is now: for those whose time follows from the clock alone. */
  nextTime?(job: Job): { due: number; payload: NonNullable<unknown> } | undefined
  /** Writes down what attempts came to in the transaction in which they end: of one lane, in their order. */
  note?(tenant: Tenant, tx: Tx, endings: [Job, Ending][]): Promise<unknown>
}

/** Why an attempt failed, for those who look at the job, and whether another can help. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly more: { outcome?: unknown; hopeless?: boolean /** ms */; after?: number } = {},
  ) {
    super(message)
  }
}

/** Something besides jobs that is looked after at each wake: it makes jobs of what it finds. */
export type Feed = { waits(tenant: Tenant): Promise<boolean>; take(tenant: Tenant & Lease): Promise<void> }

/** Lanes that are begun at once: of one tenant, which is an eighth of all, and of all tenants. */
const MAX_STARTING_LANES = { fresh: 16, retried: 8 }
const MAX_STARTING_LANES_OF_ALL = { fresh: 128, retried: 64 }
const MAX_LANES = 64 // of one tenant
const SLOW = 1_000 // ms after which a lane only waits for somebody else, and others begin in its place
const SLICE = 50 // jobs of one lane between two looks at what else is due
const TURN = 1_000 // ms after which others get their turn, though there may be more in the lane
const FEED = 200 // ms between two looks at feeds when nobody told of news
const MARK = 50 // ms after which it is written down what was done
const PATIENCE = 3 * DAY
const SOON = 1_000
const LATE = 3_600_000

const kinds = new Map<string, Work>()
const feeds: Feed[] = []
// Lanes whose last attempt failed have places of their own, so none of them is in the way of those that work.
const turns = {
  fresh: new Turns(MAX_STARTING_LANES_OF_ALL.fresh, MAX_STARTING_LANES.fresh),
  retried: new Turns(MAX_STARTING_LANES_OF_ALL.retried, MAX_STARTING_LANES.retried),
}
const KINDS_OF_LANES = ['fresh', 'retried'] as const

/** Says by whom jobs of these kinds are done. */
export function jobsAreDoneBy(works: Record<string, Work>, ...more: Feed[]) {
  for (const [kind, work] of Object.entries(works)) kinds.set(kind, work)
  feeds.push(...more)
}

/** Whether there is anything to do at a tenant now. */
export async function hasWork(tenant: Tenant): Promise<boolean> {
  if (await isDue(tenant.db)) return true
  for (const feed of feeds) if (await feed.waits(tenant)) return true
  return false
}

/**
 * Does all that is due at a tenant, until nothing is; `woken` resolves when there may be more. Answers how many jobs it
 * tried.
 */
export async function drain(tenant: Tenant & Lease, woken: () => Promise<void>): Promise<number> {
  const running = new Map<string, Promise<void>>()
  const starting = { fresh: 0, retried: 0 }
  let freed = Promise.withResolvers<void>()
  let [tried, broken] = [0, undefined as { error: unknown } | undefined]
  const begin = (head: Job, which: Tried) => {
    const work = async () => {
      starting[which]++
      let lane = Promise.resolve(0)
      const start = () => {
        lane = follow(tenant, head)
        return untilSlow(lane)
      }
      const slow = await turns[which].take(tenant, start).finally(() => starting[which]--)
      if (slow) freed.resolve()
      const several = await lane
      tried += several
    }
    const ended = work()
      .catch((error) => {
        broken ??= { error }
      })
      .finally(() => running.delete(head.lane))
    running.set(head.lane, ended)
  }
  let [news, fed] = [true, 0]
  let sick: { error: unknown } | undefined
  // A feed that fails is told of in the end: jobs that are there are none of its business.
  const feed = async () => {
    for (const feed of feeds) await feed.take(tenant)
  }
  for (;;) {
    const more = woken().then(() => {
      news = true
    })
    if (!broken && !tenant.signal.aborted) {
      // Other processes wake only themselves.
      if (!sick && (news || performance.now() - fed > FEED)) {
        news = false
        await feed().catch((error) => {
          sick = { error }
        })
        fed = performance.now()
      }
      for (const which of KINDS_OF_LANES) {
        const places = () => Math.min(MAX_STARTING_LANES[which] - starting[which], MAX_LANES - running.size)
        // Jobs of lanes that are running are due, too.
        const heads = places() > 0 ? await due(tenant.db, which, places() + running.size) : []
        for (const head of heads) if (places() > 0 && !running.has(head.lane)) begin(head, which)
      }
    }
    if (!running.size) break
    await Promise.race([...running.values(), more, freed.promise])
    freed = Promise.withResolvers<void>()
  }
  const failure = broken ?? sick
  if (failure) throw failure.error
  return tried
}

/** Waits until a lane has ended, or is slow, which is answered. */
async function untilSlow(lane: Promise<unknown>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(resolve, SLOW, true).unref()
  return Promise.race([lane.then(() => false), promise]).finally(() => clearTimeout(timer))
}

/**
 * Has what waits wait no longer than it should by the clock as it is now: while that was ahead, times were noted that
 * may be years away.
 */
export async function judgeAnew(tenant: Tenant): Promise<void> {
  const time = now()
  const timed = [...kinds].flatMap(([kind, { nextTime }]) => (nextTime ? [kind] : []))
  const next = (job: Job) => {
    const own = kinds.get(job.kind)?.nextTime
    if (own) return own(job)
    return job.due === null ? undefined : { due: time + Math.max(0, job.due - job.created) }
  }
  const changes = (await waitingLater(tenant.db, time, timed)).flatMap((job) => {
    const sooner = next(job)
    return sooner && job.due !== null && sooner.due < job.due ? [{ job, next: sooner }] : []
  })
  if (changes.length) await tenant.write((tx) => reschedule(tx, changes))
}

export const nextAt = ({ db }: Tenant) => nextDue(db)

/** Does the jobs of a lane in their order, as many as are good to be done without looking around; answers how many. */
async function follow(tenant: Tenant & Lease, head: Job): Promise<number> {
  const jobs = head.lane === head._id ? [head] : await waiting(tenant.db, head.lane, SLICE)
  let endings: [Job, Ending][] = []
  const began = performance.now()
  let since = began
  const mark = async () => {
    const known = endings
    endings = []
    since = performance.now()
    if (!known.length) return
    await tenant.write(async (tx) => {
      await settle(tx, known)
      for (const [kind, some] of Map.groupBy(known, ([{ kind }]) => kind))
        await kinds.get(kind)?.note?.(tenant, tx, some)
    })
  }
  let tried = 0
  for (const job of jobs) {
    if (tenant.signal.aborted) break
    const ending = await attempt(tenant, job)
    if (!ending) break
    tried++
    // What has an effect is written down alone, so that nothing else fails with it.
    if ('effect' in ending) await mark()
    endings.push([job, ending])
    if ('effect' in ending || performance.now() - since > MARK) await mark()
    // What comes next in the lane may depend on it.
    if (ending.state !== 'done' || performance.now() - began > TURN) break
  }
  await mark()
  return tried
}

/** Nothing when it was cut off by the loss of the lease: then it is somebody else's. */
async function attempt(tenant: Tenant & Lease, job: Job): Promise<Ending | undefined> {
  const work = kinds.get(job.kind)
  try {
    if (!work) throw new Failure(`This version does not know jobs of the kind "${job.kind}".`)
    return await work.run(tenant, job)
  } catch (error) {
    if (tenant.signal.aborted || error instanceof LeaseLost) return
    return failed(tenant, job, error, work?.patience ?? PATIENCE)
  }
}

function failed({ tenant }: Tenant, job: Job, error: unknown, patience: number): Ending {
  const known = error instanceof Failure
  const { outcome, hopeless, after = pause(job.attempts) } = known ? error.more : {}
  if (!known && !(error instanceof TooManyCalls))
    report('JOB_FAILED', { tenant, kind: job.kind, job: job._id, cause: error })
  const told = outcome ?? { message: known || error instanceof TooManyCalls ? error.message : 'It failed.' }
  const time = now()
  if (hopeless || time - job.created >= patience) return { state: 'dead', outcome: told }
  return { state: 'failed', due: time + after, outcome: told }
}

/** ms until the next attempt: doubling, and never quite at the same time as everybody else's. */
const pause = (attempts: number) =>
  Math.round(Math.min(LATE / 1.25, SOON * 2 ** Math.min(attempts, 30)) * (1 + Math.random() / 4))
