import { columnLimits } from '../../../src/entities/columns/column-limits'
import { estimates, thresholds } from '../../../src/entities/query/cardinality'
import type { SeededRandom } from '../../blueprints/seeded-random'

const defaults = { ...thresholds }

/** Thresholds from which on entities count as many. With small ones, few entities use the plans for many. */
export const SIZES = {
  usual: defaults,
  middle: {
    few: 100,
    short: 20,
    stretch: 60,
    sorted: 80,
    slice: 1_500,
    rows: 150,
    ranked: 40,
    sortedMatches: 200,
    unindexed: 50,
    exactCount: 300,
    countedRows: 600,
    sample: 50,
    marked: 16,
    sortedByTime: 1_000,
  },
  small: {
    few: 3,
    short: 1,
    stretch: 2,
    sorted: 4,
    slice: 25,
    rows: 3,
    ranked: 4,
    sortedMatches: 8,
    unindexed: 2,
    exactCount: 6,
    countedRows: 12,
    sample: 5,
    marked: 2,
    sortedByTime: 10,
  },
}

/** Runs the work with these thresholds, and with values in memory only if it `usesColumns`. */
export async function withThresholds<T>(
  size: keyof typeof SIZES,
  work: () => Promise<T>,
  { usesColumns = false } = {},
): Promise<T> {
  const limits = { ...columnLimits }
  Object.assign(thresholds, SIZES[size])
  if (usesColumns) Object.assign(columnLimits, { isFirstPlain: false, fewRows: SIZES[size].few })
  else columnLimits.bytes = 0
  try {
    return await work()
  } finally {
    Object.assign(thresholds, defaults)
    Object.assign(columnLimits, limits)
  }
}

/** Runs the work with a planner that takes each number of rows that it counts for a random one, often none or many. */
export async function withWrongEstimates({ below, pick }: SeededRandom, work: () => Promise<unknown>) {
  const { judge } = estimates
  estimates.judge = (_, limit) => pick([0, 1, below(limit + 1), limit - 1, limit])
  try {
    await work()
  } finally {
    estimates.judge = judge
  }
}
