/** How long a write of long work may hold the writer (ms). */
const TARGET_MS = 4

/** Adapts the number of rows per write of long work to the time that a row takes, so that others wait for a few ms. */
export class SliceSize {
  /** How many rows the next write takes. */
  rows: number

  constructor(
    private min: number,
    private max: number,
  ) {
    this.rows = min
  }

  /** Adapts the size to a write of so many rows, which took so long (ms). */
  recordWrite(rows: number, ms: number) {
    const fitting = Math.floor((TARGET_MS / Math.max(ms, 0.01)) * rows)
    this.rows = Math.max(this.min, Math.min(fitting, 2 * this.rows, this.max))
  }
}
