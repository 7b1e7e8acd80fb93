import { measureThreadHold } from '../core/event-loop'
import type { Histogram } from '../core/histogram'
import { bindTrace, runInTrace } from '../core/trace'
import { Busy, DiskFailure, StorageFull, TransactionAborted } from './errors'
import type { Database, Defer, DeferredWrite, Executor, JointWork, RunQuery, WriteOptions } from './port'

type OnVisible = (act: () => void) => void
type UnitExecutor = Executor & { defer: Defer; onVisible: OnVisible }
type WriteWork<T> = (executor: UnitExecutor) => Promise<T>
type UnitOptions = Omit<WriteOptions, 'joint'> & { joint?: JointWork<unknown, UnitExecutor> }
type WriteUnit = PromiseWithResolvers<unknown> & {
  work: WriteWork<unknown>
  options: UnitOptions
  /** What runs when readers see the commit. */
  actions: (() => void)[]
  value?: unknown
  failure?: { error: unknown }
}

const MAX_WAITING_UNITS = 1_000 // beyond that a write is 503 BUSY
const MAX_JOINT_UNITS = 100
const BATCH_WINDOW_MS = 10 // an older transaction takes no more units, or its first would wait forever
/** How long background work pauses while others write, as a multiple of what its last transaction took. */
const BACKGROUND_PAUSE_FACTOR = 3
const MAX_BACKGROUND_PAUSE_MS = 500

/**
 * The only writer of a tenant. Units that arrive while another runs share its transaction, each in a savepoint of its
 * own, and are acknowledged together after one COMMIT, which spreads the cost of a durable write. While the disk syncs
 * one transaction, the next one runs. The first unit needs no savepoint, for which an engine would keep a copy of every
 * page: when it fails, the whole transaction is rolled back, which holds nothing else yet. Units that can be done together
 * are one, until that fails.
 */
export class GroupCommitWriter {
  #queue: WriteUnit[] = []
  /** How many units are queued, running or waiting for their acknowledgement. */
  #waiting = 0
  #isRunning = false
  /** How many writes of others there were when background work last ended. */
  #writesSeen = 0
  #writes = 0
  /** Until when background work pauses. */
  #pausedUntil = 0

  constructor(
    private transaction: Database['transaction'],
    private deadline: number,
    /** Gets the number of units of each commit. */
    private commitSizes?: Histogram,
  ) {}

  /** Background work waits before its turn, as long as others write. */
  write<T>(work: WriteWork<T>, options: UnitOptions = {}): Promise<T> {
    if (options.background) return this.#waitForPause().then(() => this.#enqueue(work, options))
    this.#writes++
    return this.#enqueue(work, options)
  }

  async #waitForPause() {
    while (this.#pausedUntil > performance.now()) await Bun.sleep(this.#pausedUntil - performance.now())
  }

  #enqueue<T>(work: WriteWork<T>, options: UnitOptions): Promise<T> {
    if (this.#waiting >= MAX_WAITING_UNITS) return Promise.reject(new Busy())
    // The writer runs the units of many callers.
    const unit = { ...Promise.withResolvers<unknown>(), work: bindTrace(work), options, actions: [] }
    this.#waiting++
    this.#queue.push(unit)
    if (!this.#isRunning) runInTrace(undefined, () => this.#run())
    return unit.promise as Promise<T>
  }

  async #run() {
    this.#isRunning = true
    while (this.#queue.length) await this.#runBatch()
    this.#isRunning = false
  }

  async #runBatch() {
    const units: WriteUnit[] = []
    // Arriving requests get one turn of the event loop to join before the transaction begins.
    await new Promise(setImmediate)
    const startedAt = performance.now()
    const background = this.#queue[0]?.options.background ? this.#queue[0].options : undefined
    const endHold = background && measureThreadHold()
    try {
      let writtenMs = 0
      const { kept } = await this.transaction(
        (executor) => this.#runUnits(executor, units),
        () => {
          writtenMs = performance.now() - startedAt
          runActions(units)
        },
      )
      if (background) {
        background.onWritten?.(writtenMs)
        this.#pauseBackground(performance.now() - startedAt)
      }
      if (endHold) background?.onThreadHeld?.(endHold())
      this.commitSizes?.record(units.length)
      if (!kept) this.#acknowledge(units)
      else
        kept.then(
          () => this.#acknowledge(units),
          (error) => this.#acknowledge(units, { error }),
        )
    } catch (error) {
      // If the transaction could not even begin, all queued units fail.
      this.#acknowledge(units.length ? units : this.#queue.splice(0), { error })
    }
  }

  /** Without other writes, background work goes on at once. */
  #pauseBackground(ms: number) {
    if (this.#writes > this.#writesSeen)
      this.#pausedUntil = performance.now() + Math.min(ms * BACKGROUND_PAUSE_FACTOR, MAX_BACKGROUND_PAUSE_MS)
    this.#writesSeen = this.#writes
  }

  /** Failed units are also acknowledged only now: the caller may rely on the transaction being over. */
  #acknowledge(units: WriteUnit[], failed?: WriteUnit['failure']) {
    this.#waiting -= units.length
    for (const { failure = failed, value, resolve, reject } of units) failure ? reject(failure.error) : resolve(value)
  }

  async #runUnits(executor: Executor, units: WriteUnit[]) {
    const deferred: DeferredWrites = new Map()
    // When the engine repeats the transaction, the units taken so far are run again.
    for (const unit of units) await this.#runUnit(executor, unit, units.length === 1, deferred)
    await this.#collectUnits(executor, units, deferred)
    await runDeferred(executor, deferred)
  }

  async #collectUnits(executor: Executor, units: WriteUnit[], deferred: DeferredWrites) {
    const windowEnd = performance.now() + BATCH_WINDOW_MS
    while (performance.now() < windowEnd && !units[0]?.options.background) {
      const unit = this.#queue[0]
      if (!unit || ((unit.options.exclusive || unit.options.background) && units.length)) return
      const joint = this.#takeJoint()
      units.push(...joint)
      if (joint.length > 1) await this.#runJoint(executor, joint, deferred)
      else await this.#runUnit(executor, unit, units.length === 1, deferred)
    }
  }

  /** Takes the next unit from the queue, and those behind it that can be joined with it. */
  #takeJoint(): WriteUnit[] {
    const kind = this.#queue[0]?.options.joint?.kind
    const end = kind === undefined ? 1 : this.#queue.findIndex(({ options }) => options.joint?.kind !== kind)
    return this.#queue.splice(0, Math.min(end < 0 ? this.#queue.length : end, MAX_JOINT_UNITS))
  }

  /** Runs units of one kind together, or each on its own when that fails. */
  async #runJoint(executor: Executor, units: WriteUnit[], deferred: DeferredWrites) {
    const [first] = units as [WriteUnit]
    const inputs = units.map(({ options }) => options.joint?.input)
    const work: WriteWork<unknown> = async (writer) => {
      const results = await first.options.joint?.run(writer, inputs)
      if (!results) throw new Error('These units cannot be done together.')
      return results
    }
    const joint: WriteUnit = { ...first, work }
    await this.#runUnit(executor, joint, false, deferred)
    if (joint.failure) {
      for (const unit of units) await this.#runUnit(executor, unit, false, deferred)
      return
    }
    for (const [n, unit] of units.entries()) unit.value = (joint.value as unknown[])[n]
    first.actions = joint.actions
  }

  async #runUnit({ query, executeMany }: Executor, unit: WriteUnit, isFirst: boolean, deferred: DeferredWrites) {
    unit.failure = undefined
    unit.actions = []
    let isOver = false
    let fatal: unknown
    let latest: Promise<unknown> | undefined
    const deadlineAt = performance.now() + this.deadline
    const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
      // The timer gets no turn while an engine answers synchronously.
      if (performance.now() > deadlineAt) fatal ??= new Busy('A write ran too long.')
      if (isOver) throw new Error('This write has already ended.')
      if (fatal) throw fatal
      const result = work().catch((error) => {
        // Statements after a failed one fail because of it.
        fatal ??= error
        throw error
      })
      latest = result
      return result
    }
    const ownDeferred: [DeferredWrite, unknown, unknown][] = []
    const guardedExecutor = {
      query: (sql, params) => guarded(() => query(sql, params)),
      executeMany: (sql, rows) => guarded(() => executeMany(sql, rows)),
      defer: (write, key, value) => void ownDeferred.push([write as DeferredWrite, key, value]),
      onVisible: (act) => void unit.actions.push(act),
    } satisfies Parameters<WriteUnit['work']>[0]
    if (!isFirst) sendUnawaited(query, 'savepoint unit')
    try {
      unit.value = await withDeadline(this.deadline, unit.work(guardedExecutor)).finally(() => {
        isOver = true
      })
      // The unit may have started a statement without awaiting it.
      await latest
      if (fatal) throw fatal
      for (const [write, key, value] of ownDeferred) {
        const entries = deferred.get(write) ?? new Map()
        deferred.set(write, entries.set(key, value))
      }
    } catch (error) {
      // SQLite may have rolled back the whole transaction, and a full disk would not take the rest of it.
      if (fatal instanceof TransactionAborted || fatal instanceof StorageFull || fatal instanceof DiskFailure)
        throw fatal
      unit.failure = { error: fatal ?? error }
      // The transaction holds nothing else yet, so it is rolled back as a whole.
      if (isFirst) throw unit.failure.error
      await query('rollback to unit')
    }
    if (!isFirst) sendUnawaited(query, 'release unit')
  }
}

function runActions(units: WriteUnit[]) {
  for (const { failure, actions } of units) if (!failure) for (const act of actions) act()
}

type DeferredWrites = Map<DeferredWrite, Map<unknown, unknown>>

async function runDeferred(executor: Executor, deferred: DeferredWrites) {
  if (!executor.isRemote) {
    for (const [write, entries] of deferred) await write(executor, [...entries])
    return
  }
  // It waits for all, so that none goes on after the transaction.
  const settled = await Promise.allSettled([...deferred].map(([write, entries]) => write(executor, [...entries])))
  for (const one of settled) if (one.status === 'rejected') throw one.reason
}

/** Not awaited, which saves round trips. If it fails, the statements that depend on it fail, too. */
const sendUnawaited = (query: RunQuery, sql: string) => void query(sql).catch(() => {})

function withDeadline<T>(ms: number, work: Promise<T>): Promise<T> {
  const timeout = Promise.withResolvers<never>()
  const timer = setTimeout(() => timeout.reject(new Busy('A write ran too long.')), ms)
  return Promise.race([work, timeout.promise]).finally(() => clearTimeout(timer))
}
