import { yieldToEventLoop } from '../core/event-loop'
import { Busy } from '../storage/errors'

/** The tenant and the caller that expensive work is done for. */
export type WorkOwner = { tenant: string; caller: string }

/** How many pieces of expensive work may run or wait at once. */
export type ConcurrencyLimits = { perTenant: number; perCaller: number }

type CallerQueues = Map<string, (() => void)[]>

const MAX_UNPAID_MS = 2 // how long expensive work holds the thread before others get their turn
const REPAYMENT_FACTOR = 1.5 // ms that others get for each ms; above 1, because the garbage of a slice is collected in their time

/**
 * Divides the only thread between expensive work, in slices of a few ms each, and everything else: when slices have
 * taken t ms, and other requests have arrived meanwhile, the next slice waits for 1.5 t. So cheap requests get more
 * than half of the thread, however much expensive work there is. Tenants take turns with their slices, and so do the
 * callers of a tenant, which runs one slice at a time.
 */
export class FairQueue {
  #waiting = new Map<string, CallerQueues>()
  #running = new Set<string>()
  #slots = new Map<string, number>()
  /** A slice holds the thread now, or was just started. */
  #isThreadHeld = false
  #isPaused = false
  /** The time (ms) that others were owed when the last slice ended, and when that was. */
  #owedMs = 0
  #lastReleaseAt = 0
  #arrivals = 0

  /** Records that a request has arrived. */
  noteArrival() {
    this.#arrivals++
  }

  /**
   * Counts a piece of expensive work until the returned function is called. Work that has already begun is counted
   * without limits.
   * @throws 503 BUSY when the tenant or the caller has reached its limit
   */
  acquireSlot({ tenant, caller }: WorkOwner, limits?: ConcurrencyLimits): () => void {
    const [tenantKey, callerKey] = [`${tenant} `, `${tenant} ${caller}`]
    if (limits && (this.#slotsOf(tenantKey) >= limits.perTenant || this.#slotsOf(callerKey) >= limits.perCaller))
      throw new Busy()
    for (const name of [tenantKey, callerKey]) this.#slots.set(name, this.#slotsOf(name) + 1)
    return () => {
      for (const name of [tenantKey, callerKey]) {
        if (this.#slotsOf(name) > 1) this.#slots.set(name, this.#slotsOf(name) - 1)
        else this.#slots.delete(name)
      }
    }
  }

  /**
   * Runs a slice of work when it is the caller's turn. Its synchronous part counts as thread time; with `whole` all of
   * it does, for work that waits for nothing else.
   */
  async run<T>(owner: WorkOwner, work: () => Promise<T>, { whole: holdsThread = false } = {}): Promise<T> {
    const { tenant } = owner
    if (this.#isThreadHeld || this.#isPaused || this.#owedMs >= MAX_UNPAID_MS || this.#running.has(tenant))
      await this.#waitForTurn(owner)
    this.#running.add(tenant)
    this.#isThreadHeld = true
    const began = performance.now()
    try {
      const working = Promise.try(work)
      if (!holdsThread) this.#releaseThread(performance.now() - began)
      return await working
    } finally {
      this.#running.delete(tenant)
      if (holdsThread) this.#releaseThread(performance.now() - began)
      else this.#startNext()
    }
  }

  /** Adds thread time (ms) that expensive work took after its slice. */
  chargeThreadTime(ms: number) {
    const now = performance.now()
    this.#owedMs = this.#unpaidMs(now - ms) + ms * REPAYMENT_FACTOR
    this.#lastReleaseAt = now
  }

  #slotsOf = (name: string) => this.#slots.get(name) ?? 0

  #waitForTurn({ tenant, caller }: WorkOwner): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const callers: CallerQueues = this.#waiting.get(tenant) ?? new Map()
    this.#waiting.set(tenant, callers)
    const queue = callers.get(caller) ?? []
    callers.set(caller, queue)
    queue.push(resolve)
    this.#startNext()
    return promise
  }

  #releaseThread(ms: number) {
    this.#isThreadHeld = false
    this.chargeThreadTime(ms)
    this.#startNext()
  }

  /** Starts the next slice and marks the thread as held, because a new slice could overtake it otherwise. */
  #startNext() {
    if (this.#isThreadHeld || this.#isPaused || !this.#waiting.size) return
    if (this.#owedMs >= MAX_UNPAID_MS) {
      this.#isPaused = true
      this.#pauseForOthers().then(() => {
        this.#isPaused = false
        this.#startNext()
      })
      return
    }
    for (const [tenant, callers] of this.#waiting) {
      if (this.#running.has(tenant)) continue
      this.#waiting.delete(tenant)
      const [caller, queue] = callers.entries().next().value!
      callers.delete(caller)
      const resolve = queue.shift()
      if (queue.length) callers.set(caller, queue)
      if (callers.size) this.#waiting.set(tenant, callers)
      this.#running.add(tenant)
      this.#isThreadHeld = true
      resolve?.()
      return
    }
  }

  /** Leaves the thread to other requests, if there are any, for as long as they are owed. */
  async #pauseForOthers() {
    const arrivals = this.#arrivals
    // Two turns, so that requests that arrived meanwhile have been read.
    await yieldToEventLoop()
    await yieldToEventLoop()
    if (this.#arrivals !== arrivals) {
      // Thread time that is charged meanwhile extends the pause.
      for (let remainingMs = this.#unpaidMs(); remainingMs > 0; remainingMs = this.#unpaidMs())
        await Bun.sleep(remainingMs)
    }
    this.#owedMs = 0
  }

  /** Returns the ms that others are still owed at a moment, after the time that they had since the last slice. */
  #unpaidMs = (at = performance.now()) => Math.max(0, this.#owedMs - Math.max(0, at - this.#lastReleaseAt))
}

/** All expensive work of this process. */
export const costlyWork = new FairQueue()
