import fc from 'fast-check'

const DEFAULT_SEED = 4_711
const RUN_FACTOR = Number(process.env.TEST_RUNS ?? 0)
const seed = process.env.TEST_SEED ? Number(process.env.TEST_SEED) : RUN_FACTOR ? undefined : DEFAULT_SEED

/**
 * Searches for values that violate a property: the same ones at every run, or with `TEST_RUNS=50` fifty times as many
 * random ones. A failure reports its smallest counterexample and its seed, which `TEST_SEED` repeats.
 */
export const checkProperty = (runs: number, property: Parameters<typeof fc.assert>[0]) =>
  fc.assert(property as fc.IAsyncProperty<unknown>, {
    numRuns: runs * (RUN_FACTOR || 1),
    ...(seed !== undefined && { seed }),
  })

/** For `setDefaultTimeout`, in ms. */
export const PROPERTY_TIMEOUT_MS = RUN_FACTOR ? 86_400_000 : 120_000

// UTF-16, UTF-8 and the collations of languages sort these differently.
const HARD_TO_SORT_CHARACTERS = [
  'a',
  'b',
  'A',
  'Z',
  ' ',
  '_',
  '%',
  '\u0001',
  '\u007f',
  'é',
  'ß',
  '中',
  '\ue000',
  '\uffff',
  '😀',
  '𐀀',
]

/** Any text that can be stored, often of characters that are hard to sort. */
export const anyText = (maxLength = 20) =>
  fc.string({
    unit: fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...HARD_TO_SORT_CHARACTERS, '\u{10ffff}') },
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((one) => one !== '\0'),
    ),
    maxLength,
  })

/** Any double that JSON can express. */
export const anyNumber = () => fc.double({ noNaN: true, noDefaultInfinity: true })
