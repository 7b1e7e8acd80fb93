/** The minimum number of lines that are written at once. */
export const MIN_BATCH_LINES = 100
const MAX_BATCH_LINES = 4_000
const MAX_BATCH_CHARACTERS = 1 << 20 // characters
const TARGET_WRITE_MS = 150 // ms that other writers wait for a batch

/** Adapts the number of lines per write to the time that a line takes, so that other writers do not wait long. */
export class AdaptiveBatchSize {
  #maxLines = MIN_BATCH_LINES

  isFull = (lines: number, characters: number) => lines >= this.#maxLines || characters >= MAX_BATCH_CHARACTERS

  /** Adapts the size to a write of `lines` lines that took `ms` ms. */
  recordWrite(lines: number, ms: number) {
    const possible = Math.floor((lines * TARGET_WRITE_MS) / Math.max(ms, 1))
    this.#maxLines = Math.max(MIN_BATCH_LINES, Math.min(possible, 2 * this.#maxLines, MAX_BATCH_LINES))
  }

  /** Returns to the minimum, so that rejected lines are found among few. */
  reset() {
    this.#maxLines = MIN_BATCH_LINES
  }

  /** Yields lines in parts that are written at once. */
  *split<Line>(lines: Line[]): Generator<Line[]> {
    for (let at = 0; at < lines.length; ) {
      const part = lines.slice(at, at + this.#maxLines)
      at += part.length
      yield part
    }
  }
}
