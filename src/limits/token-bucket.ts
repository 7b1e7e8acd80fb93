import { BoundedMap } from '../core/bounded-map'

const MINUTE_MS = 60_000
const MAX_BUCKETS = 30_000 // beyond that the one that was added first is forgotten, and is full again
const ROUNDING_MS = 0.01

/** How many requests are left, in how many ms all are there again, and how long to wait when none was left (ms). */
export type Taken = { remaining: number; resetMs: number; waitMs: number }

/**
 * Token buckets by name, each of which holds the requests of a minute and is filled continuously. As in the generic cell
 * rate algorithm (https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm), a bucket is one number: when it will be
 * full.
 */
export class TokenBuckets {
  #fullAtByName = new BoundedMap<string, number>(MAX_BUCKETS)
  #latestTime = 0

  /** Takes a token from a bucket, if there is one. `time` is in ms. */
  take(name: string, perMinute: number, time: number): Taken {
    const msPerToken = MINUTE_MS / perMinute
    // Times from before the clock was set back would make callers wait.
    if (time < this.#latestTime) this.#fullAtByName.clear()
    this.#latestTime = time
    const fullAt = Math.max(this.#fullAtByName.get(name) ?? time, time)
    const waitMs = fullAt + msPerToken - time - MINUTE_MS
    const isTaken = waitMs < ROUNDING_MS
    const fullAfter = isTaken ? fullAt + msPerToken : fullAt
    if (isTaken) this.#fullAtByName.set(name, fullAfter)
    const resetMs = fullAfter - time
    const remaining = Math.max(0, Math.floor((MINUTE_MS - resetMs + ROUNDING_MS) / msPerToken))
    return { remaining, resetMs, waitMs: isTaken ? 0 : waitMs }
  }

  /** Removes the buckets that are full. Returns how many are left. */
  removeFull(time: number): number {
    for (const [name, fullAt] of this.#fullAtByName) if (fullAt <= time) this.#fullAtByName.delete(name)
    return this.#fullAtByName.size
  }
}
