import type { Store } from '../storage/port'
import { wrapWrite } from '../storage/write-wrapper'
import { acquireLease, isLeaseHeld, LeaseLost, releaseLease, renewLease } from './leases'

/**
 * What work under a lease gets besides its store. The store's writes throw `LeaseLost` once another process has the
 * lease.
 */
export type Lease = {
  /** Grows with each holder, so that external systems can recognize an outdated one. */
  token: number
  /**
   * Aborted with `LeaseLost` as soon as another process may have the lease. Work other than writes has to stop by
   * itself.
   */
  signal: AbortSignal
}

/** The result of work under a lease. `left` is for how many ms the lease stays taken, unless it is released earlier. */
export type LeaseResult<T> = { state: 'done'; value: T } | { state: 'taken'; left: number } | { state: 'lost' }

const DEFAULT_LEASE_TTL_MS = 30_000 // after so long another process takes over from one that died

const CLOCK_ADJUSTMENT_MS = 60_000 // clocks are corrected by less than this all the time

const activeLeases = new Map<LeaseHolder, Promise<unknown>>()

/**
 * Runs work that only one process at a time may do for a tenant, unless another process is doing it. The lease is
 * renewed during the work and released when it ends, after a pause of `cooldownMs` when the work succeeded. `ttlMs` is
 * how long a silent process keeps the lease.
 * @throws the error of the work, except `LeaseLost`
 */
export async function withLease<S extends Store, T>(
  store: S,
  name: string,
  work: (store: S & Lease) => Promise<T>,
  { ttlMs = DEFAULT_LEASE_TTL_MS, cooldownMs = 0 } = {},
): Promise<LeaseResult<T>> {
  const lease = new LeaseHolder(store, name, ttlMs, Math.max(ttlMs, cooldownMs) + CLOCK_ADJUSTMENT_MS)
  const running = runUnderLease(lease, store, work, cooldownMs)
  activeLeases.set(lease, running)
  return running.finally(() => activeLeases.delete(lease))
}

/**
 * Releases all leases of this process, so that others can go on at once. The signals of running work are aborted, and
 * the work is awaited for `timeoutMs` ms; after that its writes fail.
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
  cooldownMs: number,
): Promise<LeaseResult<T>> {
  const acquired = await lease.acquire()
  if ('left' in acquired) return { state: 'taken', left: acquired.left }
  const { token } = acquired
  const { signal, write } = lease
  try {
    signal.throwIfAborted()
    const value = await work({ ...store, write, token, signal })
    await lease.release(cooldownMs)
    return signal.aborted ? { state: 'lost' } : { state: 'done', value }
  } catch (error) {
    await lease.release()
    if (error instanceof LeaseLost) return { state: 'lost' }
    throw error
  }
}

/** Acquires, renews and releases a lease. */
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
    private ttlMs: number,
    private maxMs: number,
  ) {
    this.write = wrapWrite(store.write, async (tx, work) => {
      if (!(await isLeaseHeld(tx, this.name, this.#token))) throw this.markLost()
      return work()
    })
  }

  async acquire() {
    const acquired = await acquireLease(this.store, this.name, this.ttlMs, this.maxMs)
    if ('token' in acquired) {
      this.#token = acquired.token
      this.#watchExpiry(acquired.until)
    }
    return acquired
  }

  /** Aborts the work, and returns the error to throw. */
  markLost(): LeaseLost {
    this.#stop()
    this.#controller.abort(new LeaseLost(this.name))
    return this.signal.reason
  }

  /** Releases the lease, if it is still ours. */
  async release(cooldownMs = 0) {
    this.#stop()
    const pause = this.signal.aborted ? 0 : cooldownMs
    // When the database does not respond, the lease expires by itself.
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
    this.#renewal = setTimeout(() => this.#renew(), this.ttlMs / 3).unref()
  }

  async #renew() {
    try {
      const until = await renewLease(this.store, this.name, this.#token, this.ttlMs)
      if (until === undefined) this.markLost()
      else this.#watchExpiry(until)
    } catch {
      // A failed renewal is retried until the lease expires.
      if (!this.#isOver) this.#scheduleRenewal()
    }
  }

  #stop() {
    this.#isOver = true
    clearTimeout(this.#renewal)
    clearTimeout(this.#expiry)
  }
}
