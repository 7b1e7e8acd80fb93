/** Random values that are the same at every run with the same seed (mulberry32). */
export function seededRandom(seed: number) {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (end: number) => Math.floor(next() * end)
  const pick = <T>(values: readonly T[]): T => values[below(values.length)]!
  return {
    below,
    pick,
    chance: (share: number) => next() < share,
    some: <T>(values: readonly T[], most: number) => Array.from({ length: below(most + 1) }, () => pick(values)),
    text: (characters: readonly string[], most: number) =>
      Array.from({ length: below(most + 1) }, () => pick(characters)).join(''),
  }
}
export type SeededRandom = ReturnType<typeof seededRandom>

/** Compares byte by byte, as an index does. */
export const compareBytes = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))

/** The decimal text times 10^60, as a whole number. */
export function toDecimalUnits(text: string): bigint {
  const [, minus, whole = '', part = ''] = text.match(/^(-?)(\d+)\.?(\d*)$/)!
  const size = BigInt(whole + part.padEnd(60, '0'))
  return minus ? -size : size
}

export const compareValues = <T extends string | number | bigint | boolean>(one: T, other: T) =>
  one < other ? -1 : one > other ? 1 : 0
