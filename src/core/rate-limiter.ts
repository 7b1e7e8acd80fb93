import { BoundedMap } from './bounded-map'
import { now } from './clock'
import { sha256 } from './crypto'

const MAX_KEY_LENGTH = 128 // characters; what callers send may be longer

/**
 * Allows at most `maxCount` events per key in any `windowMs`. Keys begin with the tenant. Remembers at most `maxKeys`
 * keys: beyond that the oldest is forgotten, which errs on the caller's side.
 */
export class RateLimiter {
  #timesByKey: BoundedMap<string, number[]>

  constructor(
    private maxCount: number,
    private windowMs: number,
    maxKeys = 10_000,
  ) {
    this.#timesByKey = new BoundedMap(maxKeys)
  }

  /** Returns the ms until one more event is allowed. Counts nothing. */
  getWaitMs(name: string): number {
    const time = now()
    const times = this.#timesWithinWindow(toLimitKey(name), time)
    return times.length < this.maxCount ? 0 : times[times.length - this.maxCount]! + this.windowMs - time
  }

  /** Counts one or several events. Returns the ms to wait when that is too many, else 0 ms. */
  consume(name: string, count = 1): number {
    const time = now()
    const key = toLimitKey(name)
    const times = this.#timesWithinWindow(key, time)
    this.#timesByKey.delete(key)
    this.#timesByKey.set(key, times)
    const excess = times.length + count - this.maxCount
    if (excess > 0) return (times[excess - 1] ?? time) + this.windowMs - time
    for (let n = 0; n < count; n++) times.push(time)
    return 0
  }

  /** Leaves out later times as well: a test may set the clock back. */
  #timesWithinWindow = (key: string, time: number) =>
    (this.#timesByKey.get(key) ?? []).filter((past) => past > time - this.windowMs && past <= time)
}

const toLimitKey = (name: string) => (name.length > MAX_KEY_LENGTH ? sha256(name) : name)
