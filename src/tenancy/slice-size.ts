/** How long a write of background work may hold the writer (ms). */
const WRITE_TARGET_MS = 4

/** Adapts the number of rows per slice to the time that a row takes, so that other requests wait for a few ms. */
export class SliceSize {
  /** The number of rows of the next slice. */
  rows: number

  constructor(
    private min: number,
    private max: number,
    private targetMs = WRITE_TARGET_MS,
  ) {
    this.rows = min
  }

  /** Adapts the size to the duration of a slice (ms). */
  record(rows: number, ms: number) {
    const fitting = Math.floor((this.targetMs / Math.max(ms, 0.01)) * rows)
    this.rows = Math.max(this.min, Math.min(fitting, 2 * this.rows, this.max))
  }
}
