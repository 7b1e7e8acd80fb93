import { DURATION_BOUNDS, Histogram } from '../../core/histogram'

const MINUTE_MS = 60_000
const MAX_COUNTED_TENANTS = 10_000 // of one minute; requests of further tenants are not counted by tenant

/** The requests of a minute. Durations are in seconds; errors are answers with 5xx. */
export class Minute {
  readonly durations = new Histogram(DURATION_BOUNDS)
  errors = 0
  readonly tenants = new Map<string, number>()
  constructor(readonly start: number) {}
}

/** Counts the requests of this minute, and keeps those of the last whole one. Times are those of `performance.now()`. */
export class RecentRequests {
  #current: Minute
  #previous: Minute

  constructor(start = performance.now()) {
    this.#current = new Minute(start)
    this.#previous = new Minute(start - MINUTE_MS)
  }

  record(time: number, seconds: number, status: number, tenant: string | undefined) {
    if (time - this.#current.start >= MINUTE_MS) this.#startMinute(time)
    const minute = this.#current
    minute.durations.record(seconds)
    if (status >= 500) minute.errors++
    if (tenant === undefined) return
    const count = minute.tenants.get(tenant)
    if (count !== undefined || minute.tenants.size < MAX_COUNTED_TENANTS) minute.tenants.set(tenant, (count ?? 0) + 1)
  }

  /** Returns the requests of the last whole minute. */
  getLastMinute(time = performance.now()): Minute {
    if (time - this.#current.start >= MINUTE_MS) this.#startMinute(time)
    return this.#previous
  }

  /** Returns the tenants with the most requests in the last whole minute, and how many these were. */
  listTopTenants(count: number, time = performance.now()): [tenant: string, requests: number][] {
    return [...this.getLastMinute(time).tenants].sort(([, one], [, other]) => other - one).slice(0, count)
  }

  #startMinute(time: number) {
    const isNext = time - this.#current.start < 2 * MINUTE_MS
    this.#previous = isNext ? this.#current : new Minute(time - MINUTE_MS)
    this.#current = new Minute(isNext ? this.#current.start + MINUTE_MS : time)
  }
}
