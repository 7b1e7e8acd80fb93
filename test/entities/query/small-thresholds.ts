import { thresholds } from '../../../src/entities/query/cardinality'

const defaults = { ...thresholds }

/** From when on entities are many: with such bounds, few take the ways that are meant for many. */
export const SIZES = {
  usual: defaults,
  middle: { few: 100, stretch: 60, sorted: 80, slice: 1_500, rows: 150 },
  small: { few: 3, stretch: 2, sorted: 4, slice: 25, rows: 3 },
}

/** Does something while these bounds are in force. */
export async function withThresholds(size: keyof typeof SIZES, work: () => Promise<unknown>) {
  Object.assign(thresholds, SIZES[size])
  try {
    await work()
  } finally {
    Object.assign(thresholds, defaults)
  }
}
