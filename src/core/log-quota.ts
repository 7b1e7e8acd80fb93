const PERIOD_MS = 60_000

/**
 * Limits how often lines of one kind are logged, so that a slow disk does not also fill with lines that say so. No tenant
 * takes all of them.
 */
export class LogQuota {
  #periodEnd = 0
  #left = 0
  #omitted = 0
  #takenByTenant = new Map<string, number>()

  constructor(
    private linesPerMinute: number,
    private linesPerTenant = linesPerMinute,
  ) {}

  /** Takes one line. Returns how many were left out since the last one, or undefined when this one is left out, too. */
  take(tenant = ''): number | undefined {
    const time = performance.now()
    if (time >= this.#periodEnd) {
      this.#periodEnd = time + PERIOD_MS
      this.#left = this.linesPerMinute
      this.#takenByTenant.clear()
    }
    const taken = this.#takenByTenant.get(tenant) ?? 0
    if (!this.#left || taken >= this.linesPerTenant) {
      this.#omitted++
      return
    }
    this.#left--
    this.#takenByTenant.set(tenant, taken + 1)
    const omitted = this.#omitted
    this.#omitted = 0
    return omitted
  }
}
