import fc from 'fast-check'
import {
  anyInteger,
  anyOf,
  anyWords,
  mostly,
  type ValueArbitrary,
  valueArbitraries,
  valueArbitrary,
} from '../../blueprints/value-arbitraries'
import { anyNumber } from '../../property-runner'
import { COLUMNS, type Filter, isPatterned, OPERATORS, type Sort, withoutRepeatedLists } from './reference-model'

/** Random blueprints, entities and queries. Most values come from small sets, so that queries match some. */

export type FieldSpec = { key: string; type: string; multi: boolean; indexed: boolean }

const KEY_PARTS = ['a', 'B', 'é', '0', 'q"', "it's", 'x y', '$', '\\', '😀']
const scalar = fc.oneof(anyWords.values, anyInteger, anyNumber(), fc.boolean(), fc.constant(null))
const { object } = fc.letrec<{ object: Record<string, unknown>; value: unknown }>((tie) => ({
  value: fc.oneof(
    { weight: 4, arbitrary: scalar },
    { weight: 1, arbitrary: fc.array(tie('value'), { maxLength: 3 }) },
    { weight: 1, arbitrary: tie('object') },
  ),
  object: fc.dictionary(anyOf(...KEY_PARTS), tie('value'), { maxKeys: 4, noNullPrototype: true }),
}))

/** The fields of a random blueprint. */
export const anyFields = fc
  .array(
    fc.record({
      type: anyOf(...Object.keys(valueArbitraries), 'object'),
      multi: fc.boolean(),
      indexed: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .map((fields): FieldSpec[] => fields.map((field, n) => ({ key: `p${n}`, ...field })))

/** The properties of a random entity with these fields. */
export const anyDoc = (fields: FieldSpec[]) =>
  fc.record(
    Object.fromEntries(
      fields.map(({ key, type, multi }) => {
        const one: fc.Arbitrary<unknown> = valueArbitraries[type]?.values ?? object
        return [key, multi ? fc.array(one, { maxLength: 4 }) : one]
      }),
    ),
    { requiredKeys: [], noNullPrototype: true },
  )

export const MOMENTS = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.001Z', '2026-01-02T00:00:00.000Z']
export const USERS = ['ada', 'Bob']
export const WORKSPACES = ['w', 'W']
export const anyIdentifier = fc.string({ unit: anyOf('a', 'B', 'é', '-', '\uffff', '😀'), minLength: 1, maxLength: 4 })

/** A text as a pattern, with some characters replaced by wildcards. */
const patterns = (text: fc.Arbitrary<string>) =>
  fc
    .tuple(text, fc.nat(8), fc.nat(8), anyOf('', '%', '_', '%%'), anyOf('', '%', '_', '\\'), anyOf('', '_', '%'))
    .map(([text, from, length, before, between, after]) => {
      const part = [...text].slice(from, from + length)
      part.splice(length >> 1, 0, between)
      return `${before}${part.join('')}${after}` || '%'
    })
    .filter((text) => text !== 'undefined')

function anyFilter(name: string, { queries }: ValueArbitrary, type?: string): fc.Arbitrary<Filter> {
  const text = queries.filter((text) => text !== '')
  return anyOf(...OPERATORS.filter((one) => one !== '[$like]' || isPatterned(name, type))).chain((operator) => {
    const texts =
      operator === '[$exists]'
        ? anyOf('true', 'false', '1', '0')
        : operator === '[$like]'
          ? patterns(text)
          : /in\]$/.test(operator)
            ? fc.array(text, { minLength: 1, maxLength: 4 }).map((list) => list.join())
            : text
    return texts.map((text) => ({ name, operator, text }))
  })
}

const partKind: ValueArbitrary = valueArbitrary(
  mostly(anyOf('a', 'ä', '10', '2', '-1.5', 'true', 'false', 'zz', '9.5'), scalar.map(String)),
  ...['0x1', '1.', '1e2', ' 1', '-', '.'],
)
const momentKind = valueArbitrary(anyOf(...MOMENTS), '2026-01-01', '2026-01-01T01:00+01:00')
const columnKinds: Record<string, ValueArbitrary> = {
  created: momentKind,
  updated: momentKind,
  user: valueArbitrary(anyOf(...USERS), 'b'),
  workspace: valueArbitrary(anyOf(...WORKSPACES), 'v'),
  identifier: valueArbitrary(anyIdentifier),
  _id: valueArbitrary(fc.nat(20).map((n) => `${n}`)),
}

export type AnyQuery = { filters: Filter[]; by: Sort[]; limit: number; skip: number }

/** A random query on entities with these fields. */
export function anyQuery(fields: FieldSpec[]): fc.Arbitrary<AnyQuery> {
  const filters = fields
    .filter(({ multi, indexed, type }) => indexed || !(multi || type === 'object'))
    .flatMap(({ key, type, indexed }): fc.Arbitrary<Filter>[] => {
      if (valueArbitraries[type]) return [anyFilter(key, valueArbitraries[type], indexed ? type : undefined)]
      const path = fc.array(anyOf(...KEY_PARTS), { minLength: 1, maxLength: 2 })
      return [path.chain((parts) => anyFilter([key, ...parts].join('.'), partKind))]
    })
  const ofColumns = Object.entries(columnKinds).map(([name, column]) => anyFilter(name, column))
  const filter = filters.length ? mostly(fc.oneof(...filters), fc.oneof(...ofColumns)) : fc.oneof(...ofColumns)
  const sortable = fields.filter(({ type, multi }) => valueArbitraries[type] && !multi).map(({ key }) => key)
  return fc.record({
    filters: mostly(fc.array(filter, { maxLength: 1 }), fc.array(filter, { maxLength: 4 })).map(withoutRepeatedLists),
    by: fc.array(fc.record({ name: anyOf(...sortable, ...COLUMNS), descending: fc.boolean() }), { maxLength: 3 }),
    limit: mostly(fc.constant(1_000), fc.nat(12)),
    skip: mostly(fc.constant(0), fc.nat(5)),
  })
}
