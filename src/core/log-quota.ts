const PERIOD_MS = 60_000

/** Limits how often lines of one kind are logged, so that a slow disk does not also fill with lines that say so. */
export class LogQuota {
  #periodEnd = 0
  #left = 0
  #omitted = 0

  constructor(private linesPerMinute: number) {}

  /** Takes one line. Returns how many were left out since the last one, or undefined when this one is left out, too. */
  take(): number | undefined {
    const time = performance.now()
    if (time >= this.#periodEnd) {
      this.#periodEnd = time + PERIOD_MS
      this.#left = this.linesPerMinute
    }
    if (!this.#left) {
      this.#omitted++
      return
    }
    this.#left--
    const omitted = this.#omitted
    this.#omitted = 0
    return omitted
  }
}
