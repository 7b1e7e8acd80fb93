import fc from 'fast-check'
import { anyNumber, anyText } from '../properties'
import { COLUMNS, type Filter, OPERATORS, type Sort } from './naive'

/** Random blueprints, entities and queries; of each value there are usual ones, so that queries meet some. */

export type AnyField = { key: string; type: string; multi: boolean; indexed: boolean }

/** `asked` are other words for values, and values that nobody has. */
type Kind = { values: fc.Arbitrary<unknown>; asked: fc.Arbitrary<string> }

const among = <T>(...values: T[]) => fc.constantFrom(...values)
const mostly = <T>(usual: fc.Arbitrary<T>, any: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: usual }, { weight: 1, arbitrary: any })
const kind = <T>(values: fc.Arbitrary<T>, ...asked: string[]): Kind => ({
  values,
  asked: mostly(values.map(String), asked.length ? among(...asked) : values.map(String)),
})

const digits = (maxLength: number) => fc.string({ unit: among(...'0123456789'), minLength: 1, maxLength })
const anyDecimal = fc
  .tuple(among('', '-'), mostly(digits(2), digits(60)), fc.option(mostly(digits(2), digits(60)), { nil: undefined }))
  .map(([sign, whole, part]) => `${sign}${whole}${part === undefined ? '' : `.${part}`}`)
const anyDate = fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
const dayOf = (date: Date) => date.toISOString().slice(0, 10)
const anyMoment = fc
  .tuple(anyDate, among('T00:00Z', 'T00:00:00.000000001Z', 'T23:59:59.999Z', 'T12:30+14:00', 'T12:30:15.5-09:30'))
  .map(([date, time]) => dayOf(date) + time)
const two = (below: number) => fc.nat(below - 1).map((n) => `${n}`.padStart(2, '0'))
const anyTime = fc
  .tuple(two(24), two(60), fc.option(two(60), { nil: undefined }))
  .map((parts) => parts.filter((part) => part !== undefined).join(':'))

const LONG = 'long '.repeat(80)
const words = kind(
  mostly(among('', 'a', 'A', 'b', 'ä', 'true', '10', '9', '_', '%', LONG, `B${LONG}`), anyText()),
  ...['aa', 'B', '\ue000', '𐀀', 'zz', "'", '"', '?', 'undefined '],
)
const wholes = mostly(fc.integer({ min: -3, max: 11 }), fc.maxSafeInteger())

const kinds: Record<string, Kind> = {
  string: words,
  text: words,
  number: kind(mostly(among(0, 1, -1, 0.1, 0.1 + 0.2, 5e-324, 1e300), anyNumber()), '-0', '1.0', '.5', '+1e2', '1.'),
  integer: kind(wholes, '0.5', '1e1', '-2.5', '1e300'),
  decimal: kind(
    mostly(among('0', '-0.0', '1', '1.0', '1.50', '-1.5', '-1.05', '10'), anyDecimal),
    '01',
    '-1.50',
    '0.3',
  ),
  boolean: kind(fc.boolean(), '1', '0'),
  date: kind(mostly(among('2026-01-31', '2026-02-01', '2024-02-29', '0999-01-01'), anyDate.map(dayOf)), '2026-01-01'),
  datetime: kind(
    mostly(among('2026-01-31T12:00:00Z', '2026-01-31T14:00:00+02:00', '1969-12-31T23:59:59Z'), anyMoment),
    ...['2026-01-31', '2026-01-31T12:00Z', '1970-01-01'],
  ),
  time: kind(mostly(among('00:00', '08:00', '08:00:00', '23:59:59'), anyTime), '08:00:01'),
  email: kind(among('a@b.de', 'A@b.de', 'ä@b.de', 'a+x@b.de'), 'a@b'),
  url: kind(among('https://a.de/', 'https://a.de/?b=c&d=e', 'http://a.de'), 'https://'),
  file: kind(among('/a.png', 'https://a.de/a.png', '/B'), '/'),
}

const PARTS = ['a', 'B', 'é', '0', 'q"', "it's", 'x y', '$', '\\', '😀']
const scalar = fc.oneof(words.values, wholes, anyNumber(), fc.boolean(), fc.constant(null))
const { object } = fc.letrec<{ object: Record<string, unknown>; value: unknown }>((tie) => ({
  value: fc.oneof(
    { weight: 4, arbitrary: scalar },
    { weight: 1, arbitrary: fc.array(tie('value'), { maxLength: 3 }) },
    { weight: 1, arbitrary: tie('object') },
  ),
  object: fc.dictionary(among(...PARTS), tie('value'), { maxKeys: 4, noNullPrototype: true }),
}))

/** The fields of a blueprint. */
export const anyFields = fc
  .array(
    fc.record({
      type: among(...Object.keys(kinds), 'object'),
      multi: fc.boolean(),
      indexed: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .map((fields): AnyField[] => fields.map((field, n) => ({ key: `p${n}`, ...field })))

/** The properties of an entity of such a blueprint. */
export const anyDoc = (fields: AnyField[]) =>
  fc.record(
    Object.fromEntries(
      fields.map(({ key, type, multi }) => {
        const one: fc.Arbitrary<unknown> = kinds[type]?.values ?? object
        return [key, multi ? fc.array(one, { maxLength: 4 }) : one]
      }),
    ),
    { requiredKeys: [], noNullPrototype: true },
  )

export const MOMENTS = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.001Z', '2026-01-02T00:00:00.000Z']
export const USERS = ['ada', 'Bob']
export const WORKSPACES = ['w', 'W']
export const anyIdentifier = fc.string({ unit: among('a', 'B', 'é', '-', '\uffff', '😀'), minLength: 1, maxLength: 4 })

function anyFilter(name: string, { asked }: Kind): fc.Arbitrary<Filter> {
  const text = asked.filter((text) => text !== '')
  return among(...OPERATORS).chain((operator) => {
    const texts =
      operator === '[$exists]'
        ? among('true', 'false', '1', '0')
        : /in\]$/.test(operator)
          ? fc.array(text, { minLength: 1, maxLength: 4 }).map((list) => list.join())
          : text
    return texts.map((text) => ({ name, operator, text }))
  })
}

const part: Kind = kind(
  mostly(among('a', 'ä', '10', '2', '-1.5', 'true', 'false', 'zz', '9.5'), scalar.map(String)),
  ...['0x1', '1.', '1e2', ' 1', '-', '.'],
)
const moment = kind(among(...MOMENTS), '2026-01-01', '2026-01-01T01:00+01:00')
const columns: Record<string, Kind> = {
  created: moment,
  updated: moment,
  user: kind(among(...USERS), 'b'),
  workspace: kind(among(...WORKSPACES), 'v'),
  identifier: kind(anyIdentifier),
  _id: kind(fc.nat(20).map((n) => `${n}`)),
}

export type AnyQuery = { filters: Filter[]; by: Sort[]; limit: number; skip: number }

/** What can be asked of entities of such a blueprint. */
export function anyQuery(fields: AnyField[]): fc.Arbitrary<AnyQuery> {
  const asked = fields
    .filter(({ multi, indexed, type }) => indexed || !(multi || type === 'object'))
    .flatMap(({ key, type }): fc.Arbitrary<Filter>[] => {
      if (kinds[type]) return [anyFilter(key, kinds[type])]
      const path = fc.array(among(...PARTS), { minLength: 1, maxLength: 2 })
      return [path.chain((parts) => anyFilter([key, ...parts].join('.'), part))]
    })
  const ofColumns = Object.entries(columns).map(([name, column]) => anyFilter(name, column))
  const filter = asked.length ? mostly(fc.oneof(...asked), fc.oneof(...ofColumns)) : fc.oneof(...ofColumns)
  const sortable = fields.filter(({ type, multi }) => kinds[type] && !multi).map(({ key }) => key)
  return fc.record({
    filters: mostly(fc.array(filter, { maxLength: 1 }), fc.array(filter, { maxLength: 4 })),
    by: fc.array(fc.record({ name: among(...sortable, ...COLUMNS), descending: fc.boolean() }), { maxLength: 3 }),
    limit: mostly(fc.constant(1_000), fc.nat(12)),
    skip: mostly(fc.constant(0), fc.nat(5)),
  })
}
