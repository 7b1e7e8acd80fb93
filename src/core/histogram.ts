/** Counts values by ranges. It is cheap enough for every request, and metrics are read from it. */
export class Histogram {
  /** How many values were within each bound and above the one before. The last number is of those above all bounds. */
  readonly counts: number[]
  sum = 0

  /** @param bounds the upper bounds of the ranges, ascending */
  constructor(readonly bounds: readonly number[]) {
    this.counts = new Array(bounds.length + 1).fill(0)
  }

  record(value: number) {
    let index = 0
    while (index < this.bounds.length && value > this.bounds[index]!) index++
    this.counts[index]!++
    this.sum += value
  }

  /** Adds the counts of a histogram with the same bounds, without its sum. */
  addCounts(counts: readonly number[]) {
    for (const [index, count] of counts.entries()) this.counts[index]! += count
  }

  /** Adds what another histogram with the same bounds has counted. */
  add({ counts, sum }: Pick<Histogram, 'counts' | 'sum'>) {
    this.addCounts(counts)
    this.sum += sum
  }

  /** Returns what was counted so far, and starts over. */
  take(): Pick<Histogram, 'counts' | 'sum'> {
    const taken = { counts: [...this.counts], sum: this.sum }
    this.counts.fill(0)
    this.sum = 0
    return taken
  }

  get count() {
    return this.counts.reduce((total, count) => total + count, 0)
  }

  /** Returns the bound that this share of the values does not exceed, undefined without values or above all bounds. */
  getQuantile(share: number): number | undefined {
    let left = this.count * share
    if (!left) return
    return this.bounds.find((_, index) => {
      left -= this.counts[index]!
      return left <= 0
    })
  }
}

/** Bounds for durations of requests, statements and calls, in seconds. */
export const DURATION_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
