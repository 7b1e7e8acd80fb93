import { now } from '../../core/clock'

/** A formula is invalid or has no value. The message is the end of a sentence for the caller. */
export class FormulaError extends Error {}

const STEP_BUDGET = 2_000_000 // steps of about 20 ns
const STEPS_PER_SLICE = 100_000
const MAX_VALUE_DEPTH = 200

/** The function objects created by the interpreter. An object that only looks like one came with the data. */
export const jsonataFunctions = new WeakSet<object>()

const isFunction = (value: unknown) => typeof value === 'function' || jsonataFunctions.has(value as object)

/**
 * The budget of all formulas of one write. It counts steps instead of time, so that the same entity always has the same
 * result, no matter how busy the machine is.
 */
export class Meter {
  remaining = STEP_BUDGET
  /** The current time (ms) for all formulas of the write. */
  readonly time = now()
  /** Ends a slice of the evaluation, and resolves when the next one may begin. */
  pause?: () => Promise<void>
  #remainingAtPause = STEP_BUDGET - STEPS_PER_SLICE

  spend(steps: number) {
    this.remaining -= steps
    // Also when it has become NaN.
    if (!(this.remaining >= 0)) throw new FormulaError('it takes too long')
  }

  /** Pauses when a slice of the budget is spent. */
  pauseIfDue(): Promise<void> | undefined {
    if (!this.pause || this.remaining > this.#remainingAtPause) return
    this.#remainingAtPause = this.remaining - STEPS_PER_SLICE
    return this.pause()
  }

  /**
   * Charges for the size of a value as JSON: a part that occurs twice counts twice.
   * @throws FormulaError when the budget is spent, or a list or an object contains a function, which would expose its
   * internals
   */
  chargeFor(value: unknown, depth = 0) {
    if (typeof value === 'string') return this.spend(1 + (value.length >> 3))
    this.spend(2)
    if (value === null || typeof value !== 'object') return
    if (jsonataFunctions.has(value)) return
    if (depth > MAX_VALUE_DEPTH) throw new FormulaError('it is nested too deep')
    for (const part of Array.isArray(value) ? value : Object.values(value)) {
      if (isFunction(part)) throw new FormulaError('lists and objects can’t hold functions')
      this.chargeFor(part, depth + 1)
    }
  }
}
