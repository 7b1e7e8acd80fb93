import fc from 'fast-check'

const SEED = 4_711
const times = Number(process.env.TEST_RUNS ?? 0)
const seed = process.env.TEST_SEED ? Number(process.env.TEST_SEED) : times ? undefined : SEED

/**
 * Looks for values that a property does not hold for: the same ones at every run, or with `TEST_RUNS=50` fifty times as
 * many, which are others each time. What fails is told in its smallest form and with its seed, which `TEST_SEED` repeats.
 */
export const check = (runs: number, property: Parameters<typeof fc.assert>[0]) =>
  fc.assert(property as fc.IAsyncProperty<unknown>, {
    numRuns: runs * (times || 1),
    ...(seed !== undefined && { seed }),
  })

/** For `setDefaultTimeout`, in ms. */
export const patience = times ? 86_400_000 : 60_000

// Of these, UTF-16 and UTF-8 sort some differently, and languages most.
const CHARACTERS = [
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

/** Any text that can be kept; often of characters that are hard to sort. */
export const anyText = (maxLength = 20) =>
  fc.string({
    unit: fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...CHARACTERS, '\u{10ffff}') },
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((one) => one !== '\0'),
    ),
    maxLength,
  })

/** Any double that JSON can say. */
export const anyNumber = () => fc.double({ noNaN: true, noDefaultInfinity: true })
