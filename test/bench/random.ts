export type Random = {
  /** A number from 0 to below `end`. */
  below(end: number): number
  pick<T>(values: readonly T[]): T
}

/** Returns the same random values for the same seed. */
export function createRandom(seed: string): Random {
  let state = Bun.hash.xxHash32(seed)
  const below = (end: number) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * end)
  }
  return { below, pick: (values) => values[below(values.length)]! }
}
