import { now } from './clock'
import { hashed } from './secret'

const MAX_KEY_LENGTH = 128 // characters; what callers send may be longer

/**
 * At most `most` in any `window` (ms) for each key. Keys begin with the tenant. Remembers no more than `size` keys:
 * beyond that the oldest is forgotten, which errs on the caller's side.
 */
export class Limiter {
  #times = new Map<string, number[]>()

  constructor(
    private most: number,
    private window: number,
    private size = 10_000,
  ) {}

  /** How long (ms) until one more is allowed; counts nothing. */
  waitFor(name: string): number {
    const times = this.#times.get(keyOf(name)) ?? []
    const left = times.filter((past) => past > now() - this.window)
    return left.length < this.most ? 0 : left[left.length - this.most]! + this.window - now()
  }

  /** Counts one more, or several; returns the milliseconds to wait when that is too many, else 0. */
  take(name: string, several = 1): number {
    const time = now()
    const key = keyOf(name)
    const times = (this.#times.get(key) ?? []).filter((past) => past > time - this.window && past <= time)
    this.#times.delete(key)
    this.#times.set(key, times)
    if (this.#times.size > this.size) this.#times.delete(this.#times.keys().next().value!)
    const over = times.length + several - this.most
    if (over > 0) return (times[over - 1] ?? time) + this.window - time
    for (let n = 0; n < several; n++) times.push(time)
    return 0
  }
}

const keyOf = (name: string) => (name.length > MAX_KEY_LENGTH ? hashed(name) : name)
