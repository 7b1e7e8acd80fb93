/** Lines that are kept at once in any case. */
export const FEW = 100
const MOST = 4_000
const TEXT = 1 << 20 // characters
const TIME = 150 // ms that others who write wait for a slice

/** How many lines are kept by one write: the more the less each takes, but nobody else is to wait for long. */
export class Pace {
  #most = FEW

  isEnough = (lines: number, characters: number) => lines >= this.#most || characters >= TEXT

  /** So many were kept in so many ms. */
  kept(lines: number, ms: number) {
    const possible = Math.floor((lines * TIME) / Math.max(ms, 1))
    this.#most = Math.max(FEW, Math.min(possible, 2 * this.#most, MOST))
  }

  /** Those that are refused are found among few. */
  refused() {
    this.#most = FEW
  }
}
