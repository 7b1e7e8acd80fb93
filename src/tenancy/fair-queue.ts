import { yieldToEventLoop } from '../core/event-loop'
import { FairShare, type ShareLimits } from '../core/fair-share'
import { TurnQueue, type WorkOwner } from '../core/turn-queue'

export type { WorkOwner }

const MAX_UNPAID_MS = 2 // how long expensive work holds the thread before others get their turn
const REPAYMENT_FACTOR = 1.75 // ms that others get for each ms; above 1, because the garbage of a slice is collected in their time
const TURN_MS = 2 // thread time of a turn; an owner whose slice took longer sits out turns

/**
 * Divides the only thread between expensive work, in slices of a few ms each, and everything else: when slices have
 * taken t ms, and other requests have arrived meanwhile, the next slice waits for 1.75 t. So cheap requests get more
 * than half of the thread, however much expensive work there is. Tenants take turns with their slices, weighted by the
 * time that these take, and so do the callers of a tenant, which runs one slice at a time.
 */
export class FairQueue {
  #waiting = new TurnQueue<() => void>()
  /** The tenants that have a slice under way. */
  #running = new Set<string>()
  #slots = new FairShare({})
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
  acquireSlot(owner: WorkOwner, limits: ShareLimits = {}): () => void {
    return this.#slots.reserve(owner, 1, limits)
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
      if (!holdsThread) this.#releaseThread(owner, performance.now() - began)
      return await working
    } finally {
      this.#running.delete(tenant)
      if (holdsThread) this.#releaseThread(owner, performance.now() - began)
      else this.#startNext()
      if (!this.#running.size && !this.#waiting.size) this.#waiting.forgetTurns()
    }
  }

  /** Adds thread time (ms) that expensive work took after its slice. */
  chargeThreadTime(ms: number) {
    const now = performance.now()
    this.#owedMs = this.#unpaidMs(now - ms) + ms * REPAYMENT_FACTOR
    this.#lastReleaseAt = now
  }

  #waitForTurn(owner: WorkOwner): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    // The thread is held from here on, because a new slice could overtake this one otherwise.
    this.#waiting.add(owner, () => {
      this.#running.add(owner.tenant)
      this.#isThreadHeld = true
      resolve()
    })
    this.#startNext()
    return promise
  }

  #releaseThread(owner: WorkOwner, ms: number) {
    this.#isThreadHeld = false
    this.#waiting.charge(owner, ms / TURN_MS - 1)
    this.chargeThreadTime(ms)
    this.#startNext()
  }

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
    this.#waiting.takeNext(({ tenant }) => !this.#running.has(tenant))?.()
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
