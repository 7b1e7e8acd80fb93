import { yieldToEventLoop } from '../core/event-loop'
import { Busy } from '../storage/errors'

/** For whom costly work is done. */
export type WorkOwner = { tenant: string; caller: string }

/** How many pieces of costly work may be under way. */
export type ConcurrencyLimits = { perTenant: number; perCaller: number }

type CallerQueues = Map<string, (() => void)[]>

const MAX_UNPAID_MS = 2 // ms that costly work holds the thread before others get their turn
const REPAYMENT_FACTOR = 1.5 // ms that others get for each ms; above 1, as what a slice leaves behind is collected in their time

/**
 * Divides the thread that answers everybody between costly work, a slice of at most some ms at a time, and everything
 * else: whenever slices have taken t, and somebody else has asked something meanwhile, the next one waits for 1.5 t. So
 * what is cheap has more than half of the thread, whoever asks for how much. Tenants take turns with their slices, and so do the
 * callers of a tenant, who has one slice under way at a time.
 */
export class FairQueue {
  #waiting = new Map<string, CallerQueues>()
  #running = new Set<string>()
  #slots = new Map<string, number>()
  /** A slice holds the thread now, or was just told to. */
  #isThreadHeld = false
  #isPaused = false
  /** Time (ms) that others were owed when the last slice ended, and when that was. */
  #owedMs = 0
  #lastReleaseAt = 0
  #arrivals = 0

  /** Notes that somebody has asked something. */
  noteArrival() {
    this.#arrivals++
  }

  /**
   * Counts a piece of costly work as under way, until the function that it returns is called. What has begun already is
   * counted without limits. @throws 503 BUSY when the tenant or the caller has as many as that
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
   * Does a slice of work when it is the caller's turn. What it does at once counts as thread time, and with `whole` all
   * until it ends, for work that waits for nothing but itself.
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

  /** Adds thread time (ms) that was taken for costly work after a slice. */
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

  /** The place is handed on, or else somebody who comes just now would overtake. */
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

  /** Leaves the thread to others for as long as they are owed, if there are any. */
  async #pauseForOthers() {
    const arrivals = this.#arrivals
    // Twice, so that what came in meanwhile has been read.
    await yieldToEventLoop()
    await yieldToEventLoop()
    if (this.#arrivals !== arrivals) {
      // What is spent meanwhile makes it longer.
      for (let remainingMs = this.#unpaidMs(); remainingMs > 0; remainingMs = this.#unpaidMs())
        await Bun.sleep(remainingMs)
    }
    this.#owedMs = 0
  }

  /** What others are still owed at a moment (ms), after the time that they had since the last slice. */
  #unpaidMs = (at = performance.now()) => Math.max(0, this.#owedMs - Math.max(0, at - this.#lastReleaseAt))
}

/** All costly work of this process. */
export const costlyWork = new FairQueue()
