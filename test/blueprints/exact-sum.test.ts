import { expect, test } from 'bun:test'
import { fieldTypes } from '../../src/blueprints/fields'
import { decimalSum, doubleSum, type ExactSum, integerSum } from '../../src/blueprints/fields/exact-sum'
import { decimalKey, decimalOf, numberKey } from '../../src/blueprints/fields/index-key-codec'
import { seededRandom, toDecimalUnits } from './seeded-random'

const sumOfKeys = ({ units, format }: ExactSum, keys: string[]) =>
  format(keys.map(units).reduce((total, unit) => total + unit, 0n))
const sumOfDoubles = (...values: number[]) => sumOfKeys(doubleSum, values.map(numberKey))
const sumOfWholes = (...values: number[]) => sumOfKeys(integerSum, values.map(numberKey))
const sumOfDecimals = (...values: string[]) => sumOfKeys(decimalSum, values.map(decimalKey))

test('the sum of no values is zero for every number type', () => {
  expect([sumOfDoubles(), sumOfWholes(), sumOfDecimals()]).toEqual([0, 0, 0])
})

test('the sum of integers is exact, and text beyond the safe integers', () => {
  const max = Number.MAX_SAFE_INTEGER
  expect(sumOfWholes(max, -1, 1)).toBe(max)
  expect(sumOfWholes(max, 1)).toBe('9007199254740992')
  expect(sumOfWholes(max, 2)).toBe('9007199254740993')
  expect(sumOfWholes(-max, -max)).toBe('-18014398509481982')
})

test('the sum of decimals is exact, and text where a number cannot represent it', () => {
  expect(sumOfDecimals('0.1', '0.2')).toBe(0.3)
  expect(sumOfDecimals('19.90', '0.10')).toBe(20)
  expect(sumOfDecimals('-1.5', '0.25')).toBe(-1.25)
  expect(sumOfDecimals('-0.5', '0.50')).toBe(0)
  expect(sumOfDecimals('12345678901234567.89', '0.01')).toBe('12345678901234567.9')
  expect(sumOfDecimals('0.1234567890123456789')).toBe('0.1234567890123456789')
  expect(sumOfDecimals('1'.padEnd(60, '0'))).toBe(1e59)
  expect(sumOfDecimals(`0.${'1'.padStart(60, '0')}`)).toBe(1e-60)
  expect(sumOfDecimals('9'.repeat(60), `0.${'1'.padStart(60, '0')}`)).toBe(`${'9'.repeat(60)}.${'1'.padStart(60, '0')}`)
})

test('the sum of random decimals equals the sum of their digits', () => {
  const source = seededRandom(60)
  const digits = [...'0001234567899']
  for (let run = 0; run < 300; run++) {
    const values = Array.from({ length: 1 + source.below(8) }, () => {
      const part = source.text(digits, source.chance(0.5) ? 3 : 60)
      return `${source.chance(0.5) ? '-' : ''}${source.text(digits, 30) || '0'}${part && `.${part}`}`
    })
    const sum = sumOfDecimals(...values)
    const expected = values.map(toDecimalUnits).reduce((total, unit) => total + unit, 0n)
    if (typeof sum === 'string') expect(toDecimalUnits(sum), `${values}`).toBe(expected)
    else expect(Number(`${expected}e-60`), `${values}`).toBe(sum)
  }
})

test('the sum of doubles is rounded only once, so that their order does not matter', () => {
  expect(sumOfDoubles(0.1, 0.2)).toBe(0.1 + 0.2)
  expect(sumOfDoubles(1e16, 1, -1e16)).toBe(1)
  expect(sumOfDoubles(1e308, 1e308, -1e308)).toBe(1e308)
  expect(sumOfDoubles(5e-324, 5e-324)).toBe(1e-323)
  expect(sumOfDoubles(-5e-324)).toBe(-5e-324)
  expect(sumOfDoubles(2.2250738585072014e-308, -5e-324)).toBe(2.225073858507201e-308)
  // A tie between two doubles rounds to even, unless the smallest bit breaks it.
  expect(sumOfDoubles(2 ** 53, 1)).toBe(2 ** 53)
  expect(sumOfDoubles(2 ** 53, 1, 5e-324)).toBe(2 ** 53 + 2)
  expect(sumOfDoubles(-(2 ** 53), -1, -5e-324)).toBe(-(2 ** 53) - 2)
  expect(sumOfDoubles(...Array(10).fill(0.1))).toBe(1)
})

test('a sum of doubles beyond the largest double is text', () => {
  expect(sumOfDoubles(1.5e308, 1.5e308)).toBe(`${2n * BigInt(1.5e308)}`)
  expect(sumOfDoubles(-1.5e308, -1.5e308)).toBe(`-${2n * BigInt(1.5e308)}`)
  expect(sumOfDoubles(Number.MAX_VALUE)).toBe(Number.MAX_VALUE)
})

test('an index key yields its value, without extra zeros of a decimal and truncated after 256 characters of text', () => {
  const source = seededRandom(7)
  const values: Record<string, unknown[]> = {
    number: [0, 1, -1.5, 1e300, -1e-300, 5e-324, Number.MAX_VALUE],
    integer: [0, -7, Number.MAX_SAFE_INTEGER],
    boolean: [true, false],
    string: ['', 'a', '\u0001', 'é😀', 'x'.repeat(256)],
    relation: ['a', '1'],
  }
  for (const [name, list] of Object.entries(values))
    for (const value of list) {
      const { toIndexKey, fromIndexKey, losesNotation } = fieldTypes[name as keyof typeof fieldTypes]
      expect([fromIndexKey!(toIndexKey!(value)), !!losesNotation?.(toIndexKey!(value))], name).toEqual([value, false])
    }
  for (let run = 0; run < 500; run++) {
    const part = source.text([...'0012'], 12).replace(/0+$/, '')
    const whole = source.text([...'0123'], 12).replace(/^0+/, '') || '0'
    const value = `${source.chance(0.5) && whole + part !== '0' ? '-' : ''}${whole}${part && `.${part}`}`
    expect(decimalOf(decimalKey(value))).toBe(value)
  }
  const long = `${'long '.repeat(60)}text`
  const key = fieldTypes.text.toIndexKey!(long)
  expect(fieldTypes.text.losesNotation!(key)).toBe(true)
  expect(fieldTypes.text.fromIndexKey!(key)).toBe(`${long.slice(0, 256)}…`)
})
