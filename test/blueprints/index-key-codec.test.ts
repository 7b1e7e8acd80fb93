import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { type FieldTypeName, fieldTypes } from '../../src/blueprints/fields'
import { decimalKey, numberKey, numberOf, textKey } from '../../src/blueprints/fields/index-key-codec'
import { DatabasePool } from '../../src/storage/pool'
import { compareScalars, parsers } from '../entities/query/reference-model'
import { anyNumber, anyText, checkProperty, PROPERTY_TIMEOUT_MS } from '../property-runner'
import { engines } from '../storage/engines'
import { freshLocation, migrations, things } from '../storage/fixtures'
import { compareBytes, compareValues, toDecimalUnits } from './seeded-random'
import { valueArbitraries } from './value-arbitraries'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)

const doubles = [
  ...[0, 1, 2, 9, 10, 15, 16, 17, 255, 256, 1e21, 2 ** 31, 2 ** 32, 2 ** 53 - 1, 2 ** 53, 0.1, 0.2, 0.1 + 0.2, 1 / 3],
  ...[Number.MAX_VALUE, Number.MIN_VALUE, Number.EPSILON, 2.2250738585072014e-308, 1.5, 19.9, 19.99, 1e-7, 1e300],
]
const numbers = [...doubles, ...doubles.map((value) => -value)]

const valuesByType = Object.entries(valueArbitraries).map(([type, { values }]) => {
  const { toIndexKey } = fieldTypes[type as FieldTypeName]
  const meaning = parsers[type] ?? ((text: string) => text)
  const valued = values.map((value) => ({ key: toIndexKey!(value), meaning: meaning(`${value}`) }))
  return [type, valued] as const
})

test.each(valuesByType)(
  'index keys of the type %s have the order of their values and are equal only for equal values',
  (_, values) =>
    checkProperty(
      3_000,
      fc.property(values, values, (one, other) => {
        expect<number>(compareBytes(one.key, other.key)).toBe(compareScalars(one.meaning, other.meaning))
      }),
    ),
)

describe.each(engines)('%s', (_, engine) => {
  const storage = new DatabasePool(engine(), { openCount: 2, deadline: 10_000 })
  const { db, write } = storage.getStore(freshLocation(), migrations)
  afterAll(() => storage.close())

  test.each(valuesByType)(
    'a database orders index keys of the type %s like their values, in a column and in JSON',
    (_, values) =>
      checkProperty(
        10,
        fc.asyncProperty(fc.uniqueArray(values, { selector: ({ key }) => key, maxLength: 30 }), async (all) => {
          await write(async (tx) => {
            await tx.delete(things)
            for (const { key } of all) await tx.insert(things).values({ id: key, count: 0, doc: { f1: key } })
          })
          const sorted = [...all]
            .sort((one, other) => compareScalars(one.meaning, other.meaning))
            .map(({ key }) => [key])
          expect(await db.query('select id from things order by id')).toEqual(sorted)
          expect(await db.query('select id from things order by doc ->> ? desc', ['f1'])).toEqual(sorted.reverse())
        }),
      ),
  )
})

test('index keys of huge, tiny and negative numbers are in order, and both zeros have one key', () => {
  for (const one of numbers)
    for (const other of numbers)
      expect(compareBytes(numberKey(one), numberKey(other)), `${one} and ${other}`).toBe(compareValues(one, other))
  expect(numberKey(-0)).toBe(numberKey(0))
})

test('a number is read back from its index key', () => {
  for (const value of numbers) expect(numberOf(numberKey(value))).toBe(value || 0)
  checkProperty(
    3_000,
    fc.property(anyNumber(), (value) => expect(numberOf(numberKey(value))).toBe(value || 0)),
  )
})

test('index keys of decimals that are close to each other are in order', () =>
  checkProperty(
    3_000,
    fc.property(valueArbitraries.decimal!.values, fc.nat(20), fc.boolean(), (value, more, turned) => {
      const one = `${value}`
      const other = turned ? `-${one}`.replace('--', '') : one + (one.includes('.') ? '' : '.') + more
      fc.pre(!/\.\d{61}/.test(other))
      expect(compareBytes(decimalKey(one), decimalKey(other))).toBe(
        compareValues(toDecimalUnits(one), toDecimalUnits(other)),
      )
    }),
  ))

test('index keys of decimals of every sign and size are in ascending order', () => {
  const [nines, zeros] = ['9'.repeat(60), '0'.repeat(59)]
  const sizes = [`0.${zeros}1`, `0.${zeros}2`, '0.009', '0.01', '0.0100001', '0.099', '0.1', '0.5', '0.9', '1', '1.05']
  sizes.push('1.5', '9', '9.99', '10', '10.01', '99', '100', `1${zeros}`, nines, `${nines}.${nines}`)
  const all = [...sizes.map((size) => `-${size}`).reverse(), '0', ...sizes]
  expect([...all].sort((one, other) => compareBytes(decimalKey(one), decimalKey(other)))).toEqual(all)
  expect(new Set(all.map(decimalKey)).size).toBe(all.length)
})

test.each([
  [['0', '-0', '0.000', '-000.0', '00']],
  [['1', '1.0', '01', '001.000']],
  [['-19.9', '-19.90', '-019.900']],
  [['1000', '1000.0', '0001000']],
  [['0.001', '0.0010', '00.001']],
])('equal decimals in different notations have one index key: %s', (notations) => {
  expect(new Set(notations.map(decimalKey)).size).toBe(1)
})

test('index keys of long texts are bounded and well-formed, and equal only for equal texts', () => {
  checkProperty(
    1_000,
    fc.property(fc.integer({ min: 240, max: 260 }), anyText(), anyText(), (length, ...ends) => {
      const [one, other] = ends.map((end) => 'x'.repeat(length) + end) as [string, string]
      expect(textKey(one) === textKey(other)).toBe(one === other)
      expect(textKey(one).isWellFormed()).toBe(true)
      expect(textKey(one).length).toBeLessThan(350)
    }),
  )
  expect(textKey('y'.repeat(100_000)).length).toBeLessThan(350)
  expect(textKey(`${'y'.repeat(100_000)}1`)).not.toBe(textKey(`${'y'.repeat(100_000)}2`))
})

test('index keys of texts that differ within their first 256 characters have the order of the texts', () => {
  const length = fc.constantFrom(0, 1, 100, 253, 254, 255)
  const tail = fc.tuple(anyText().filter(Boolean), fc.constantFrom(0, 1, 300))
  return checkProperty(
    3_000,
    fc.property(length, tail, tail, (start, ...tails) => {
      const [one, other] = tails.map(([text, more]) => 'x'.repeat(start) + text + 'y'.repeat(more)) as [string, string]
      fc.pre(one[start] !== other[start])
      expect(compareBytes(textKey(one), textKey(other))).toBe(compareBytes(one, other))
    }),
  )
})
