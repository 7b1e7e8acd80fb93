import { Busy } from './busy'
import { TurnQueue, type WorkOwner } from './turn-queue'

/** How much there may be at once: of all tenants, of one tenant, and of one of its callers. */
export type ShareLimits = { total?: number; perTenant?: number; perCaller?: number }

type ShareOptions = {
  running?: ShareLimits
  /**
   * How much of a tenant may wait, and how long (ms). When that is reached, the caller with the most waiting work gives way to
   * others. Without it, what cannot start at once is refused.
   */
  waiting?: { perTenant?: number; timeoutMs?: number }
  /** How long a turn is (ms): longer work takes several turns. Without it, all work counts alike. */
  turnMs?: number
  /** What is thrown instead of 503 BUSY, by the limit that was reached. */
  createRefusal?: (limit: ReachedLimit) => Error
}

type ReachedLimit = keyof ShareLimits | 'timeoutMs'
type WaitingWork = { start(): void; refuse(limit: ReachedLimit): void }

type RunOptions = {
  /** Ends the wait. */
  signal?: AbortSignal
  /** Starts only when no other work that waits may start. */
  isLowPriority?: boolean
}

/**
 * Divides one costly place among tenants and their callers: bounds how much of each runs and waits, and lets them take
 * turns with what waits, so that a flood delays only its own tenant, and there only its own caller.
 */
export class FairShare {
  #running = new OwnerTotals()
  #waiting = new TurnQueue<WaitingWork>()
  #lowPriority = new TurnQueue<WaitingWork>()
  #queues = [this.#waiting, this.#lowPriority]

  constructor(private options: ShareOptions) {}

  /** How much of all tenants runs and waits. */
  get totals(): { running: number; waiting: number } {
    return { running: this.#running.total, waiting: this.#waiting.size + this.#lowPriority.size }
  }

  /** Tells whether new work has to wait, whoever asks. */
  get isFull() {
    return this.#running.total >= (this.options.running?.total ?? Number.POSITIVE_INFINITY)
  }

  /** Returns how much of a tenant runs and waits. */
  countOf(tenant: string) {
    const waiting = this.#waiting.sizeOfTenant(tenant) + this.#lowPriority.sizeOfTenant(tenant)
    return { running: this.#running.ofTenant(tenant), waiting }
  }

  /**
   * Runs work when it is the owner's turn.
   * @throws 503 BUSY when too much waits, or this waited for too long
   */
  async run<T>(owner: WorkOwner, work: () => Promise<T>, options: RunOptions = {}): Promise<T> {
    if (this.#mayStart(owner)) this.#running.add(owner, 1)
    else await this.#waitForTurn(owner, options)
    const began = performance.now()
    try {
      return await work()
    } finally {
      this.#finish(owner, performance.now() - began)
    }
  }

  /**
   * Counts work that begins at once, until the returned function is called. `amount` is how much it is. Work beyond a
   * limit is accepted where nothing else runs.
   * @throws 503 BUSY when the limits are reached
   */
  reserve(owner: WorkOwner, amount = 1, limits: ShareLimits = this.options.running ?? {}): () => void {
    const limit = findExceeded(limits, amount, this.#running.of(owner))
    if (limit) throw this.#refuse(limit)
    this.#running.add(owner, amount)
    let isReleased = false
    return () => {
      if (!isReleased) this.#running.add(owner, -amount)
      isReleased = true
    }
  }

  #mayStart = (owner: WorkOwner) => !findExceeded(this.options.running ?? {}, 1, this.#running.of(owner))

  #refuse = (limit: ReachedLimit) => this.options.createRefusal?.(limit) ?? new Busy()

  async #waitForTurn(owner: WorkOwner, { signal, isLowPriority }: RunOptions) {
    if (signal?.aborted) throw this.#refuse('timeoutMs')
    const queue = isLowPriority ? this.#lowPriority : this.#waiting
    this.#makeRoom(queue, owner)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const work: WaitingWork = {
      // Counted before it runs, because new work could overtake it otherwise.
      start: () => {
        this.#running.add(owner, 1)
        resolve()
      },
      refuse: (limit) => reject(this.#refuse(limit)),
    }
    const giveUp = () => {
      if (queue.remove(owner, work)) work.refuse('timeoutMs')
    }
    queue.add(owner, work)
    const { timeoutMs } = this.options.waiting ?? {}
    const timer = timeoutMs && setTimeout(giveUp, timeoutMs)
    signal?.addEventListener('abort', giveUp)
    await promise.finally(() => {
      if (timer) clearTimeout(timer)
      signal?.removeEventListener('abort', giveUp)
    })
  }

  /** Lets the caller with the most waiting work give way where the queue of a tenant is full. @throws 503 BUSY */
  #makeRoom(queue: TurnQueue<WaitingWork>, owner: WorkOwner) {
    const { perTenant = Number.POSITIVE_INFINITY } = this.options.waiting ?? { perTenant: 0 }
    const sizes = queue.sizesOf(owner)
    if (sizes.ofTenant < perTenant) return
    const evicted = queue.takeLastOfLongest(owner.tenant, sizes.ofCaller + 1)
    if (!evicted) throw this.#refuse('perTenant')
    evicted.refuse('perCaller')
  }

  #finish(owner: WorkOwner, ms: number) {
    this.#running.add(owner, -1)
    const { turnMs, running } = this.options
    if (turnMs) for (const queue of this.#queues) queue.charge(owner, ms / turnMs - 1)
    // Without a limit for all, only work of the same tenant has waited for this.
    const tenant = running?.total === undefined ? owner.tenant : undefined
    const next = this.#waiting.takeNext(this.#mayStart, tenant) ?? this.#lowPriority.takeNext(this.#mayStart, tenant)
    if (next) next.start()
    else if (!this.#running.total) for (const queue of this.#queues) queue.forgetTurns()
  }
}

/** Amounts of all tenants, of each tenant, and of each of its callers. */
class OwnerTotals {
  total = 0
  #amounts = new Map<string, number>()

  ofTenant = (tenant: string) => this.#amounts.get(tenant) ?? 0

  of = (owner: WorkOwner): Required<ShareLimits> => ({
    total: this.total,
    perTenant: this.ofTenant(owner.tenant),
    perCaller: this.#amounts.get(toKey(owner)) ?? 0,
  })

  add(owner: WorkOwner, amount: number) {
    this.total += amount
    for (const key of [owner.tenant, toKey(owner)]) {
      const sum = (this.#amounts.get(key) ?? 0) + amount
      if (sum) this.#amounts.set(key, sum)
      else this.#amounts.delete(key)
    }
  }
}

// No tenant has a space in its name.
const toKey = ({ tenant, caller }: WorkOwner) => `${tenant} ${caller}`

/** Returns the limit that one more amount would exceed. Any amount fits where there is nothing yet. */
const findExceeded = (limits: ShareLimits, amount: number, present: Required<ShareLimits>) =>
  LIMIT_NAMES.find((name) => present[name] + amount > Math.max(limits[name] ?? Number.POSITIVE_INFINITY, amount))

const LIMIT_NAMES = ['perCaller', 'perTenant', 'total'] as const
