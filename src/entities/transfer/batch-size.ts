/** Lines that are kept at once in any case. */
export const MIN_BATCH_LINES = 100
const MAX_BATCH_LINES = 4_000
const MAX_BATCH_CHARACTERS = 1 << 20 // characters
const TARGET_WRITE_MS = 150 // ms that others who write wait for a slice

/** How many lines are kept by one write: the more the less each takes, but nobody else is to wait for long. */
export class AdaptiveBatchSize {
  #maxLines = MIN_BATCH_LINES

  isFull = (lines: number, characters: number) => lines >= this.#maxLines || characters >= MAX_BATCH_CHARACTERS

  /** So many were kept in so many ms. */
  recordWrite(lines: number, ms: number) {
    const possible = Math.floor((lines * TARGET_WRITE_MS) / Math.max(ms, 1))
    this.#maxLines = Math.max(MIN_BATCH_LINES, Math.min(possible, 2 * this.#maxLines, MAX_BATCH_LINES))
  }

  /** Those that are refused are found among few. */
  reset() {
    this.#maxLines = MIN_BATCH_LINES
  }
}
