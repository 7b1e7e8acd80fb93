import fc from 'fast-check'
import { anyNumber, anyText } from '../property-runner'

/** Random values, often common ones so that some are equal; `queries` also has other notations and absent values. */
export type ValueArbitrary = { values: fc.Arbitrary<unknown>; queries: fc.Arbitrary<string> }

export const anyOf = <T>(...values: T[]) => fc.constantFrom(...values)
export const mostly = <T>(usual: fc.Arbitrary<T>, any: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: usual }, { weight: 1, arbitrary: any })
export const valueArbitrary = <T>(values: fc.Arbitrary<T>, ...queryTexts: string[]): ValueArbitrary => ({
  values,
  queries: mostly(values.map(String), queryTexts.length ? anyOf(...queryTexts) : values.map(String)),
})

const anyDigits = (maxLength: number) => fc.string({ unit: anyOf(...'0123456789'), minLength: 1, maxLength })
const anyDecimal = fc
  .tuple(
    anyOf('', '-'),
    mostly(anyDigits(2), anyDigits(60)),
    fc.option(mostly(anyDigits(2), anyDigits(60)), { nil: undefined }),
  )
  .map(([sign, whole, part]) => `${sign}${whole}${part === undefined ? '' : `.${part}`}`)
const anyDate = fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
const dayOf = (date: Date) => date.toISOString().slice(0, 10)
const anyMoment = fc
  .tuple(anyDate, anyOf('T00:00Z', 'T00:00:00.000000001Z', 'T23:59:59.999Z', 'T12:30+14:00', 'T12:30:15.5-09:30'))
  .map(([date, time]) => dayOf(date) + time)
const twoDigits = (below: number) => fc.nat(below - 1).map((n) => `${n}`.padStart(2, '0'))
const anyTime = fc
  .tuple(twoDigits(24), twoDigits(60), fc.option(twoDigits(60), { nil: undefined }))
  .map((parts) => parts.filter((part) => part !== undefined).join(':'))

const LONG_TEXT = 'long '.repeat(80)
export const anyWords = valueArbitrary(
  mostly(anyOf('', 'a', 'A', 'b', 'ä', 'true', '10', '9', '_', '%', LONG_TEXT, `B${LONG_TEXT}`), anyText()),
  ...['aa', 'B', '\ue000', '𐀀', 'zz', "'", '"', '?', 'undefined '],
)
export const anyInteger = mostly(fc.integer({ min: -3, max: 11 }), fc.maxSafeInteger())

/** The arbitrary of each field type. */
export const valueArbitraries: Record<string, ValueArbitrary> = {
  string: anyWords,
  text: anyWords,
  number: valueArbitrary(
    mostly(anyOf(0, 1, -1, 0.1, 0.1 + 0.2, 5e-324, 1e300), anyNumber()),
    '-0',
    '1.0',
    '.5',
    '+1e2',
    '1.',
  ),
  integer: valueArbitrary(anyInteger, '0.5', '1e1', '-2.5', '1e300'),
  decimal: valueArbitrary(
    mostly(anyOf('0', '-0.0', '1', '1.0', '1.50', '-1.5', '-1.05', '10'), anyDecimal),
    '01',
    '-1.50',
    '0.3',
  ),
  boolean: valueArbitrary(fc.boolean(), '1', '0'),
  date: valueArbitrary(
    mostly(anyOf('2026-01-31', '2026-02-01', '2024-02-29', '0999-01-01'), anyDate.map(dayOf)),
    '2026-01-01',
  ),
  datetime: valueArbitrary(
    mostly(anyOf('2026-01-31T12:00:00Z', '2026-01-31T14:00:00+02:00', '1969-12-31T23:59:59Z'), anyMoment),
    ...['2026-01-31', '2026-01-31T12:00Z', '1970-01-01'],
  ),
  time: valueArbitrary(mostly(anyOf('00:00', '08:00', '08:00:00', '23:59:59'), anyTime), '08:00:01'),
  email: valueArbitrary(anyOf('a@b.de', 'A@b.de', 'ä@b.de', 'a+x@b.de'), 'a@b'),
  url: valueArbitrary(anyOf('https://a.de/', 'https://a.de/?b=c&d=e', 'http://a.de'), 'https://'),
  file: valueArbitrary(anyOf('/a.png', 'https://a.de/a.png', '/B'), '/'),
}
