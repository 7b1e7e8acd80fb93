import { thresholds } from '../../../src/entities/query/cardinality'

const defaults = { ...thresholds }

/** Thresholds from which on entities count as many. With small ones, few entities use the plans for many. */
export const SIZES = {
  usual: defaults,
  middle: {
    few: 100,
    stretch: 60,
    sorted: 80,
    slice: 1_500,
    rows: 150,
    ranked: 40,
    unindexed: 50,
    exactCount: 300,
    countedRows: 600,
    sample: 50,
  },
  small: {
    few: 3,
    stretch: 2,
    sorted: 4,
    slice: 25,
    rows: 3,
    ranked: 4,
    unindexed: 2,
    exactCount: 6,
    countedRows: 12,
    sample: 5,
  },
}

/** Runs the work with these thresholds. */
export async function withThresholds(size: keyof typeof SIZES, work: () => Promise<unknown>) {
  Object.assign(thresholds, SIZES[size])
  try {
    await work()
  } finally {
    Object.assign(thresholds, defaults)
  }
}
