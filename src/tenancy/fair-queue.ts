import { yieldToEventLoop } from '../core/event-loop'
import { FairShare, type ShareLimits } from '../core/fair-share'
import { readThreadMs, ThreadLoad } from '../core/thread-load'
import { TurnQueue, type WorkOwner } from '../core/turn-queue'
import { ThreadShares } from './thread-shares'

export type { WorkOwner }

const MAX_UNPAID_MS = 2 // how long expensive work holds the thread before others get their turn
const REPAYMENT_FACTOR = 4 // ms that other tenants get for each ms
const OWN_REPAYMENT_FACTOR = 0.25 // the same when only requests of the tenant itself arrive
const MAX_IDLE_MS = 3 // after which others are not waited for any longer
/** How much of the rest of the thread's time is charged to expensive work, as a multiple of its slices. */
const MAX_REST_FACTOR = 2
/** The time of the thread that a cheap request takes, as a multiple of that of its handler: it is also received and sent. */
const CHEAP_REQUEST_FACTOR = 2
const TURN_MS = 2 // thread time of a turn; an owner whose slice took longer sits out turns

/**
 * Divides the only thread between expensive work, in slices of a few ms each, and everything else: when slices have
 * taken t ms, and requests of other tenants have arrived meanwhile, the next slice waits for 4 t. So these get four
 * fifths of the thread, however much expensive work there is. What belongs to expensive work without being in a
 * slice, such as its garbage, its input and the rest of its requests, is told by the thread's clock: it is what neither
 * slices nor cheap requests have taken. Tenants take turns with their slices, weighted by the time that these take, and
 * so do the callers of a tenant, which runs one slice at a time. A turn of the event loop has one piece of work: its
 * slice, what awaits that, and its next slices until they have taken 2 ms.
 */
export class FairQueue {
  #waiting = new TurnQueue<() => void>()
  /** The tenants that have a slice under way. */
  #running = new Set<string>()
  #slots = new FairShare({})
  /** A slice holds the thread now, or was just started, or what awaited it goes on. */
  #isThreadHeld = false
  #isPaused = false
  /** The owner whose slice was started last, and when its turn is over. */
  #turn: { owner: WorkOwner; endsAt: number } | undefined
  /** The time (ms) that others were owed when the last slice ended, and when that was. */
  #owedMs = 0
  #lastReleaseAt = 0
  #arrivals = 0
  #arrivalsByTenant = new Map<string, number>()
  /** How many requests had arrived when the last slice ended, also those of other tenants than its own. */
  #arrivalsSeen = 0
  #othersSeen = 0
  #lastTenant = ''
  #shares = new ThreadShares()
  /** The time (ms) of slices and of handlers of cheap requests since the thread's clock was last read. */
  #slicedMs = 0
  #cheapMs = 0
  /** The part of the slices that belongs to requests, which have a rest. */
  #requestedMs = 0
  #lastThreadMs = 0

  #readThreadMs: () => number
  #load?: Pick<ThreadLoad, 'isBusy'>

  /**
   * `readThreadMs` returns how long (ms) this thread has had a processor so far. While `load` is not busy, others are left two
   * turns of the event loop after a slice, which is all that they need.
   */
  constructor({
    readThreadMs = () => 0,
    load,
  }: { readThreadMs?: () => number; load?: Pick<ThreadLoad, 'isBusy'> } = {}) {
    this.#readThreadMs = readThreadMs
    this.#load = load
  }

  /** Records that a request of a tenant has arrived. */
  noteArrival(tenant: string, count = 1) {
    if (count > 0) this.#shares.note(tenant, 0)
    this.#arrivals += count
    this.#arrivalsByTenant.set(tenant, (this.#arrivalsByTenant.get(tenant) ?? 0) + count)
  }

  /** Records the time (ms) that the handler of a cheap request took of the thread. */
  noteCheapRequest(tenant: string, ms: number) {
    this.#cheapMs += ms
    this.noteUse(tenant, ms)
  }

  /** Records thread time (ms) of a tenant outside slices. */
  noteUse(tenant: string, ms: number) {
    this.#shares.note(tenant, ms)
  }

  /** Tells whether a tenant has just used more than its share of the thread. */
  isAboveShare = (tenant: string) => this.#shares.isExceeded(tenant)

  /**
   * Counts a piece of expensive work until the returned function is called. Work that has already begun is counted
   * without limits.
   * @throws 503 BUSY when the tenant or the caller has reached its limit
   */
  acquireSlot(owner: WorkOwner, limits: ShareLimits = {}): () => void {
    return this.#slots.reserve(owner, 1, limits)
  }

  /** Tells whether a tenant has expensive work that was given a slot. */
  hasWork = (tenant: string) => this.#slots.countOf(tenant).running > 0

  /**
   * Runs a slice of work when it is the caller's turn. Its synchronous part counts as thread time; with `whole` all of
   * it does, for work that waits for nothing else.
   */
  async run<T>(owner: WorkOwner, work: () => Promise<T>, { whole: holdsThread = false } = {}): Promise<T> {
    const { tenant } = owner
    if (this.#isThreadHeld && this.#turn?.owner === owner && performance.now() < this.#turn.endsAt)
      return this.#continueTurn(owner, work)
    if (this.#isThreadHeld || this.#isPaused || this.#mustPause() || this.#running.has(tenant))
      await this.#waitForTurn(owner)
    this.#running.add(tenant)
    this.#isThreadHeld = true
    const began = performance.now()
    this.#turn = holdsThread ? undefined : { owner, endsAt: began + TURN_MS }
    try {
      const working = Promise.try(work)
      if (!holdsThread) {
        this.#endSlice(owner, performance.now() - began)
        // What awaits the slice goes on before others do.
        setImmediate(() => this.#releaseThread())
      }
      return await working
    } finally {
      this.#running.delete(tenant)
      if (holdsThread) {
        this.#endSlice(owner, performance.now() - began)
        this.#releaseThread()
      } else this.#startNext()
      if (!this.#running.size && !this.#waiting.size) this.#waiting.forgetTurns()
    }
  }

  /** Runs a further slice of the work that holds the thread. */
  #continueTurn<T>(owner: WorkOwner, work: () => Promise<T>): Promise<T> {
    const began = performance.now()
    const working = Promise.try(work)
    this.#endSlice(owner, performance.now() - began)
    return working
  }

  /** Adds thread time (ms) that expensive work took after its slice. Nothing else belongs to work in the background. */
  chargeThreadTime(ms: number, { isBackground = false } = {}) {
    const now = performance.now()
    this.#owedMs = this.#unpaidMs(now - ms) + ms * REPAYMENT_FACTOR
    this.#lastReleaseAt = now
    this.#slicedMs += ms
    if (!isBackground) this.#requestedMs += ms
  }

  #waitForTurn(owner: WorkOwner): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    // A request that has arrived meanwhile and waits itself is not one of those that are left the thread.
    if (this.#isPaused) this.noteArrival(owner.tenant, -1)
    // The thread is held from here on, because a new slice could overtake this one otherwise.
    this.#waiting.add(owner, () => {
      this.#running.add(owner.tenant)
      this.#isThreadHeld = true
      resolve()
    })
    this.#startNext()
    return promise
  }

  #endSlice(owner: WorkOwner, ms: number) {
    this.#arrivalsSeen = this.#arrivals
    this.#lastTenant = owner.tenant
    this.#othersSeen = this.#countOthers()
    this.#waiting.charge(owner, ms / TURN_MS - 1)
    this.#shares.note(owner.tenant, ms)
    this.chargeThreadTime(ms)
  }

  #releaseThread() {
    this.#isThreadHeld = false
    this.#startNext()
  }

  #startNext() {
    if (this.#isThreadHeld || this.#isPaused || !this.#waiting.size) return
    if (this.#mustPause()) {
      this.#isPaused = true
      this.#pauseForOthers().then(() => {
        this.#isPaused = false
        this.#startNext()
      })
      return
    }
    this.#waiting.takeNext(({ tenant }) => !this.#running.has(tenant))?.()
  }

  /** Tells whether others are owed so much that the next slice waits. Without other tenants, each slice leaves them a turn anyway. */
  #mustPause = () =>
    this.#owedMs >= (this.#shares.isAlone ? (MAX_UNPAID_MS * REPAYMENT_FACTOR) / OWN_REPAYMENT_FACTOR : MAX_UNPAID_MS)

  /** Leaves the thread to other requests, for as long as they come and are owed time. */
  async #pauseForOthers() {
    // Two turns, so that requests that arrived meanwhile have been read.
    await yieldToEventLoop()
    await yieldToEventLoop()
    const restMs = this.#takeRestMs()
    if (this.#load && !this.#load.isBusy()) {
      this.#owedMs = 0
      return
    }
    if (this.#arrivals > this.#arrivalsSeen) this.#owedMs += restMs * REPAYMENT_FACTOR
    // A tenant that has the thread to itself divides it evenly.
    if (this.#countOthers() <= this.#othersSeen) this.#owedMs *= OWN_REPAYMENT_FACTOR / REPAYMENT_FACTOR
    // Thread time that is charged meanwhile extends the pause.
    for (let remainingMs = this.#unpaidMs(); remainingMs > 0; remainingMs = this.#unpaidMs()) {
      if (this.#arrivals <= this.#arrivalsSeen) break
      this.#arrivalsSeen = this.#arrivals
      await Bun.sleep(Math.min(remainingMs, MAX_IDLE_MS))
    }
    this.#owedMs = 0
  }

  /** Returns how many requests have arrived of other tenants than that of the last slice. */
  #countOthers = () => this.#arrivals - (this.#arrivalsByTenant.get(this.#lastTenant) ?? 0)

  /** Returns the time (ms) since the last call that belongs to expensive work without being in a slice. */
  #takeRestMs(): number {
    const threadMs = this.#readThreadMs()
    const restMs = threadMs - this.#lastThreadMs - this.#slicedMs - this.#cheapMs * CHEAP_REQUEST_FACTOR
    const mostMs = this.#requestedMs * MAX_REST_FACTOR
    this.#lastThreadMs = threadMs
    this.#slicedMs = 0
    this.#requestedMs = 0
    this.#cheapMs = 0
    return Math.max(0, Math.min(restMs, mostMs))
  }

  /** Returns the ms that others are still owed at a moment, after the time that they had since the last slice. */
  #unpaidMs = (at = performance.now()) => Math.max(0, this.#owedMs - Math.max(0, at - this.#lastReleaseAt))
}

/** All expensive work of this process. */
export const costlyWork = new FairQueue({ readThreadMs, load: new ThreadLoad() })
