import { now } from './clock'
import { sha256 } from './crypto'

const MAX_KEY_LENGTH = 128 // characters; what callers send may be longer

/**
 * Allows at most `maxCount` events per key in any `windowMs`. Keys begin with the tenant and a space. Remembers at most
 * `maxKeys` keys: beyond that the oldest of the tenant with the most keys is forgotten, which errs on the caller's side,
 * and never on that of another tenant.
 */
export class RateLimiter {
  #timesByTenant = new Map<string, Map<string, number[]>>()
  #size = 0

  constructor(
    private maxCount: number,
    private windowMs: number,
    private maxKeys = 10_000,
  ) {}

  /** Returns the ms until one more event is allowed. Counts nothing. */
  getWaitMs(name: string): number {
    const time = now()
    const times = this.#timesWithinWindow(name, time)
    return times.length < this.maxCount ? 0 : times[times.length - this.maxCount]! + this.windowMs - time
  }

  /** Counts one or several events. Returns the ms to wait when that is too many, else 0 ms. */
  consume(name: string, count = 1): number {
    const time = now()
    const times = this.#timesWithinWindow(name, time)
    this.#remember(name, times)
    const excess = times.length + count - this.maxCount
    if (excess > 0) return (times[excess - 1] ?? time) + this.windowMs - time
    for (let n = 0; n < count; n++) times.push(time)
    return 0
  }

  /** Leaves out later times as well: a test may set the clock back. */
  #timesWithinWindow(name: string, time: number) {
    const times = this.#timesByTenant.get(tenantOf(name))?.get(toLimitKey(name)) ?? []
    return times.filter((past) => past > time - this.windowMs && past <= time)
  }

  #remember(name: string, times: number[]) {
    const [tenant, key] = [tenantOf(name), toLimitKey(name)]
    const keys = this.#timesByTenant.get(tenant) ?? new Map<string, number[]>()
    if (!keys.delete(key)) this.#size++
    keys.set(key, times)
    this.#timesByTenant.set(tenant, keys)
    if (this.#size > this.maxKeys) this.#forgetOldest()
  }

  #forgetOldest() {
    let [tenant, largest] = ['', new Map<string, number[]>()]
    for (const [name, keys] of this.#timesByTenant) if (keys.size > largest.size) [tenant, largest] = [name, keys]
    // Several at once, because looking for the tenant takes a while where there are many.
    for (const key of largest.keys().take(Math.ceil(largest.size / 8))) if (largest.delete(key)) this.#size--
    if (!largest.size) this.#timesByTenant.delete(tenant)
  }
}

const tenantOf = (name: string) => toLimitKey(name.slice(0, name.indexOf(' ') >>> 0))
const toLimitKey = (name: string) => (name.length > MAX_KEY_LENGTH ? sha256(name) : name)
