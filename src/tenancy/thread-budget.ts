import { BoundedMap } from '../core/bounded-map'

const MAX_TRACKED_TENANTS = 10_000

/** Thread time that a kind of work may use of each tenant before it is treated as costly. */
export class ThreadBudget {
  /** Thread time (ms) used by each tenant, as of `at`; the budget of the time since then is still to be deducted. */
  #used = new BoundedMap<string, { ms: number; at: number }>(MAX_TRACKED_TENANTS)

  constructor(private msPerSecond: number) {}

  /** Records thread time (ms) that work of a tenant has used. */
  charge(tenant: string, ms: number) {
    this.#used.set(tenant, { ms: this.#usedBy(tenant) + ms, at: performance.now() })
  }

  /** Tells whether a tenant has used more than the budget of a second. */
  isExceeded = (tenant: string) => this.#usedBy(tenant) >= this.msPerSecond

  #usedBy(tenant: string): number {
    const { ms, at } = this.#used.get(tenant) ?? { ms: 0, at: 0 }
    return Math.max(0, ms - ((performance.now() - at) * this.msPerSecond) / 1_000)
  }
}
