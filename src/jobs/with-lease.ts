import type { Store } from '../storage/port'
import { wrapWrite } from '../storage/write-wrapper'
import { acquireLease, isLeaseHeld, LeaseLost, releaseLease, renewLease } from './leases'

/** What work under a lease gets beside its store, whose writes are refused with `LeaseLost` once somebody else has it. */
export type Lease = {
  /** Grows with each holder: for those outside who can tell an old one from a new one. */
  token: number
  /** Aborted with `LeaseLost` as soon as the lease may be somebody else's: what is not a write has to stop by itself. */
  signal: AbortSignal
}

/** What became of it. `left` says how long the lease is not to be had (ms), unless it is released earlier. */
export type LeaseResult<T> = { state: 'done'; value: T } | { state: 'taken'; left: number } | { state: 'lost' }

const DEFAULT_LEASE_TTL_MS = 30_000 // ms; this long nobody takes over from a process that died

const activeLeases = new Map<LeaseHolder, Promise<unknown>>()

/**
 * Does work that only one process at a time may do for a tenant, if nobody else does it now. The lease is renewed while
 * the work goes on, and freed when it ends, unless a `rest` (ms) is to pass after it was done. `length` (ms) is how long
 * a silent process keeps it. Errors of the work come out, but for those of a lost lease.
 */
export async function withLease<S extends Store, T>(
  store: S,
  name: string,
  work: (store: S & Lease) => Promise<T>,
  { length: ttl = DEFAULT_LEASE_TTL_MS, rest: cooldown = 0 } = {},
): Promise<LeaseResult<T>> {
  const lease = new LeaseHolder(store, name, ttl)
  const running = runUnderLease(lease, store, work, cooldown)
  activeLeases.set(lease, running)
  return running.finally(() => activeLeases.delete(lease))
}

/**
 * Frees all leases of this process, so that others go on at once. Whoever works is told by the signal, and is waited for
 * `patience` ms; who works on after that can write no more.
 */
export async function releaseAllLeases(timeoutMs = 2_000) {
  const unfinished = [...activeLeases.values()]
  for (const held of activeLeases.keys()) held.markLost()
  const waited = Promise.withResolvers<void>()
  const timer = setTimeout(waited.resolve, timeoutMs)
  await Promise.race([Promise.allSettled(unfinished), waited.promise])
  clearTimeout(timer)
  await Promise.all([...activeLeases.keys()].map((held) => held.release()))
}

async function runUnderLease<S extends Store, T>(
  lease: LeaseHolder,
  store: S,
  work: (store: S & Lease) => Promise<T>,
  cooldown: number,
): Promise<LeaseResult<T>> {
  const acquired = await lease.acquire()
  if ('left' in acquired) return { state: 'taken', left: acquired.left }
  const { token } = acquired
  const { signal, write } = lease
  try {
    signal.throwIfAborted()
    const value = await work({ ...store, write, token, signal })
    await lease.release(cooldown)
    return signal.aborted ? { state: 'lost' } : { state: 'done', value }
  } catch (error) {
    await lease.release()
    if (error instanceof LeaseLost) return { state: 'lost' }
    throw error
  }
}

/** A lease while it is taken, kept and freed. */
class LeaseHolder {
  #token = 0
  #isOver = false
  #controller = new AbortController()
  #renewal?: Timer
  #expiry?: Timer
  signal = this.#controller.signal
  write: Store['write']

  constructor(
    private store: Store,
    private name: string,
    private ttl: number,
  ) {
    this.write = wrapWrite(store.write, async (tx, work) => {
      if (!(await isLeaseHeld(tx, this.name, this.#token))) throw this.markLost()
      return work()
    })
  }

  async acquire() {
    const acquired = await acquireLease(this.store, this.name, this.ttl)
    if ('token' in acquired) {
      this.#token = acquired.token
      this.#watchExpiry(acquired.until)
    }
    return acquired
  }

  /** Tells the work that its lease is gone, and returns what is to be thrown. */
  markLost(): LeaseLost {
    this.#stop()
    this.#controller.abort(new LeaseLost(this.name))
    return this.signal.reason
  }

  /** Frees the lease, if it is ours still. */
  async release(cooldown = 0) {
    this.#stop()
    const pause = this.signal.aborted ? 0 : cooldown
    // Without an answer of the database it expires by itself.
    const freed = await releaseLease(this.store, this.name, this.#token, pause).catch(() => true)
    if (!freed) this.markLost()
  }

  #watchExpiry(until: number) {
    clearTimeout(this.#expiry)
    if (this.#isOver) return
    const remaining = until - performance.now()
    if (remaining <= 0) return void this.markLost()
    this.#expiry = setTimeout(() => this.markLost(), remaining).unref()
    this.#scheduleRenewal()
  }

  #scheduleRenewal() {
    this.#renewal = setTimeout(() => this.#renew(), this.ttl / 3).unref()
  }

  async #renew() {
    try {
      const until = await renewLease(this.store, this.name, this.#token, this.ttl)
      if (until === undefined) this.markLost()
      else this.#watchExpiry(until)
    } catch {
      // Without an answer it is asked again, until the time is up.
      if (!this.#isOver) this.#scheduleRenewal()
    }
  }

  #stop() {
    this.#isOver = true
    clearTimeout(this.#renewal)
    clearTimeout(this.#expiry)
  }
}
