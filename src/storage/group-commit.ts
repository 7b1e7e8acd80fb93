import { Busy, DiskFailure, StorageFull, TransactionAborted } from './errors'
import type { Database, Defer, DeferredWrite, Executor, RunQuery, WriteOptions } from './port'

type WriteWork<T> = (executor: Executor & { defer: Defer }) => Promise<T>
type WriteUnit = PromiseWithResolvers<unknown> & {
  work: WriteWork<unknown>
  exclusive?: boolean
  value?: unknown
  failure?: { error: unknown }
}

const MAX_WAITING_UNITS = 1_000 // units; the next is told to come back later
const BATCH_WINDOW_MS = 10 // ms; an older transaction takes no further units, or its first would wait forever

/**
 * The only writer of a tenant. Units that come while another runs share its transaction, each in a savepoint of its
 * own, and are acknowledged together after one COMMIT: the price of a durable write is divided among them. While the
 * disk is busy with one transaction, the next is made. The first needs no savepoint, for which an engine would keep a copy
 * of every page: when it fails, so does the transaction, in which nothing else is yet.
 */
export class GroupCommitWriter {
  #queue: WriteUnit[] = []
  /** How many units wait to be done, or to be told that they are. */
  #waiting = 0
  #isRunning = false

  constructor(
    private transaction: Database['transaction'],
    private deadline: number,
  ) {}

  write<T>(work: WriteWork<T>, { exclusive }: WriteOptions = {}): Promise<T> {
    if (this.#waiting >= MAX_WAITING_UNITS) return Promise.reject(new Busy())
    const unit = { ...Promise.withResolvers<unknown>(), work, exclusive }
    this.#waiting++
    this.#queue.push(unit)
    if (!this.#isRunning) this.#run()
    return unit.promise as Promise<T>
  }

  async #run() {
    this.#isRunning = true
    while (this.#queue.length) await this.#runBatch()
    this.#isRunning = false
  }

  async #runBatch() {
    const units: WriteUnit[] = []
    try {
      const { kept } = await this.transaction((asking) => this.#runUnits(asking, units))
      if (!kept) this.#acknowledge(units)
      else
        kept.then(
          () => this.#acknowledge(units),
          (error) => this.#acknowledge(units, { error }),
        )
    } catch (error) {
      // If it could not even begin, all who wait have waited in vain.
      this.#acknowledge(units.length ? units : this.#queue.splice(0), { error })
    }
  }

  /** Only now, also for those that failed: who has an answer may rely on the transaction being over. */
  #acknowledge(units: WriteUnit[], failed?: WriteUnit['failure']) {
    this.#waiting -= units.length
    for (const { failure = failed, value, resolve, reject } of units) failure ? reject(failure.error) : resolve(value)
  }

  async #runUnits(executor: Executor, units: WriteUnit[]) {
    const deferred: DeferredWrites = new Map()
    // The engine begins anew: what was taken in vain is taken again.
    for (const unit of units) await this.#runUnit(executor, unit, units.length === 1, deferred)
    await this.#collectUnits(executor, units, deferred)
    for (const [write, entries] of deferred) await write(executor, [...entries])
  }

  async #collectUnits(executor: Executor, units: WriteUnit[], deferred: DeferredWrites) {
    const windowEnd = performance.now() + BATCH_WINDOW_MS
    while (performance.now() < windowEnd) {
      // Requests that are just coming in get one turn of the event loop to join.
      if (!this.#queue.length) await new Promise(setImmediate)
      const unit = this.#queue[0]
      if (!unit || (unit.exclusive && units.length)) return
      this.#queue.shift()
      units.push(unit)
      await this.#runUnit(executor, unit, units.length === 1, deferred)
    }
  }

  async #runUnit({ query, executeMany }: Executor, unit: WriteUnit, isFirst: boolean, deferred: DeferredWrites) {
    unit.failure = undefined
    let isOver = false
    let fatal: unknown
    let latest: Promise<unknown> | undefined
    const deadlineAt = performance.now() + this.deadline
    const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
      // An engine that answers at once leaves no turn to the timer.
      if (performance.now() > deadlineAt) fatal ??= new Busy('A write ran too long.')
      if (isOver) throw new Error('This write has already ended.')
      if (fatal) throw fatal
      const answer = work().catch((error) => {
        // Those behind a failed statement fail because of it.
        fatal ??= error
        throw error
      })
      latest = answer
      return answer
    }
    const ownDeferred: [DeferredWrite, unknown, unknown][] = []
    const guardedExecutor = {
      query: (sql, params) => guarded(() => query(sql, params)),
      executeMany: (sql, rows) => guarded(() => executeMany(sql, rows)),
      defer: (write, key, value) => void ownDeferred.push([write as DeferredWrite, key, value]),
    } satisfies Parameters<WriteUnit['work']>[0]
    if (!isFirst) sendUnawaited(query, 'savepoint unit')
    try {
      unit.value = await withDeadline(this.deadline, unit.work(guardedExecutor)).finally(() => {
        isOver = true
      })
      // It may have asked for something without waiting for it.
      await latest
      if (fatal) throw fatal
      for (const [write, key, value] of ownDeferred) {
        const entries = deferred.get(write) ?? new Map()
        deferred.set(write, entries.set(key, value))
      }
    } catch (error) {
      // SQLite may have undone all of the transaction, and nothing of it would find room.
      if (fatal instanceof TransactionAborted || fatal instanceof StorageFull || fatal instanceof DiskFailure)
        throw fatal
      unit.failure = { error: fatal ?? error }
      // Nothing else is in the transaction yet, so all of it may go.
      if (isFirst) throw unit.failure.error
      await query('rollback to unit')
    }
    if (!isFirst) sendUnawaited(query, 'release unit')
  }
}

type DeferredWrites = Map<DeferredWrite, Map<unknown, unknown>>

/** Not awaited, which saves trips over the network. Should it fail, then so does what depends on it. */
const sendUnawaited = (query: RunQuery, sql: string) => void query(sql).catch(() => {})

function withDeadline<T>(ms: number, work: Promise<T>): Promise<T> {
  const timeout = Promise.withResolvers<never>()
  const timer = setTimeout(() => timeout.reject(new Busy('A write ran too long.')), ms)
  return Promise.race([work, timeout.promise]).finally(() => clearTimeout(timer))
}
