import { now } from '../../core/clock'

/** Said to whoever sent what a formula makes no value of. */
export class FormulaError extends Error {}

const STEP_BUDGET = 2_000_000 // steps of about 20 ns
const MAX_VALUE_DEPTH = 200

/** Functions as the interpreter makes them; what only looks like one came with the data. */
export const jsonataFunctions = new WeakSet<object>()

const isFunction = (value: unknown) => typeof value === 'function' || jsonataFunctions.has(value as object)

/**
 * What the formulas of one write may still cost. It is counted, not timed, so that the same entity always gives the same
 * answer, however busy the machine is.
 */
export class Meter {
  remaining = STEP_BUDGET
  /** When it is, for all formulas of the write. */
  readonly time = now()

  spend(steps: number) {
    this.remaining -= steps
    // Also when somebody made it NaN.
    if (!(this.remaining >= 0)) throw new FormulaError('it takes too long')
  }

  /**
   * Pays for a value as large as it is when written out: parts that occur twice count twice. Functions are in no list and
   * no object, where an expression could take them apart.
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
