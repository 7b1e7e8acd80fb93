import type { Store } from '../storage/port'
import { holds, LeaseLost, release, renew, take } from './leases'

/** What work under a lease gets beside its store, whose writes are refused with `LeaseLost` once somebody else has it. */
export type Lease = {
  /** Grows with each holder: for those outside who can tell an old one from a new one. */
  token: number
  /** Aborted with `LeaseLost` as soon as the lease may be somebody else's: what is not a write has to stop by itself. */
  signal: AbortSignal
}

/** What became of it. `left` says how long the lease is not to be had (ms), unless it is released earlier. */
export type Outcome<T> = { state: 'done'; value: T } | { state: 'taken'; left: number } | { state: 'lost' }

const LENGTH = 30_000 // ms; this long nobody takes over from a process that died

const current = new Map<Holding, Promise<unknown>>()

/**
 * Does work that only one process at a time may do for a tenant, if nobody else does it now. The lease is renewed while
 * the work goes on, and freed when it ends, unless a `rest` (ms) is to pass after it was done. `length` (ms) is how long
 * a silent process keeps it. Errors of the work come out, but for those of a lost lease.
 */
export async function holding<S extends Store, T>(
  store: S,
  name: string,
  work: (store: S & Lease) => Promise<T>,
  { length = LENGTH, rest = 0 } = {},
): Promise<Outcome<T>> {
  const held = new Holding(store, name, length)
  const running = run(held, store, work, rest)
  current.set(held, running)
  return running.finally(() => current.delete(held))
}

/**
 * Frees all leases of this process, so that others go on at once. Whoever works is told by the signal, and is waited for
 * `patience` ms; who works on after that can write no more.
 */
export async function releaseAll(patience = 2_000) {
  const ending = [...current.values()]
  for (const held of current.keys()) held.lose()
  const waited = Promise.withResolvers<void>()
  const timer = setTimeout(waited.resolve, patience)
  await Promise.race([Promise.allSettled(ending), waited.promise])
  clearTimeout(timer)
  await Promise.all([...current.keys()].map((held) => held.end()))
}

async function run<S extends Store, T>(
  held: Holding,
  store: S,
  work: (store: S & Lease) => Promise<T>,
  rest: number,
): Promise<Outcome<T>> {
  const taken = await held.begin()
  if ('left' in taken) return { state: 'taken', left: taken.left }
  const { token } = taken
  const { signal, write } = held
  try {
    signal.throwIfAborted()
    const value = await work({ ...store, write, token, signal })
    await held.end(rest)
    return signal.aborted ? { state: 'lost' } : { state: 'done', value }
  } catch (error) {
    await held.end()
    if (error instanceof LeaseLost) return { state: 'lost' }
    throw error
  }
}

/** A lease while it is taken, kept and freed. */
class Holding {
  #token = 0
  #over = false
  #controller = new AbortController()
  #renewal?: Timer
  #expiry?: Timer
  signal = this.#controller.signal

  constructor(
    private store: Store,
    private name: string,
    private length: number,
  ) {}

  async begin() {
    const taken = await take(this.store, this.name, this.length)
    if ('token' in taken) {
      this.#token = taken.token
      this.#keep(taken.until)
    }
    return taken
  }

  write: Store['write'] = (work, manner) =>
    this.store.write(async (tx) => {
      if (!(await holds(tx, this.name, this.#token))) throw this.lose()
      return work(tx)
    }, manner)

  /** Tells the work that its lease is gone, and returns what is to be thrown. */
  lose(): LeaseLost {
    this.#stop()
    this.#controller.abort(new LeaseLost(this.name))
    return this.signal.reason
  }

  /** Frees the lease, if it is ours still. */
  async end(rest = 0) {
    this.#stop()
    const pause = this.signal.aborted ? 0 : rest
    // Without an answer of the database it expires by itself.
    const freed = await release(this.store, this.name, this.#token, pause).catch(() => true)
    if (!freed) this.lose()
  }

  #keep(until: number) {
    clearTimeout(this.#expiry)
    if (this.#over) return
    const left = until - performance.now()
    if (left <= 0) return void this.lose()
    this.#expiry = setTimeout(() => this.lose(), left).unref()
    this.#later()
  }

  #later() {
    this.#renewal = setTimeout(() => this.#renew(), this.length / 3).unref()
  }

  async #renew() {
    try {
      const until = await renew(this.store, this.name, this.#token, this.length)
      if (until === undefined) this.lose()
      else this.#keep(until)
    } catch {
      // Without an answer it is asked again, until the time is up.
      if (!this.#over) this.#later()
    }
  }

  #stop() {
    this.#over = true
    clearTimeout(this.#renewal)
    clearTimeout(this.#expiry)
  }
}
