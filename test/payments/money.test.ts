import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { addSpan } from '../../src/payments/billing-period'
import {
  applyDiscount,
  exponentOf,
  fromMinorUnits,
  MAX_MINOR_AMOUNT,
  parseCurrency,
  toMinorUnits,
} from '../../src/payments/money'
import { checkProperty } from '../property-runner'

const currency = fc.constantFrom('USD', 'EUR', 'JPY', 'KWD', 'CLF', 'TND')
const minor = fc.integer({ min: 0, max: MAX_MINOR_AMOUNT })
const percent = fc.double({ min: 0, max: 100, noNaN: true })

test('toMinorUnits rounds an amount to whole minor units, half away from zero by its decimal digits', () => {
  const cases = [
    [19.99, 'USD', 1999],
    [1.005, 'USD', 101],
    [-1.005, 'USD', -101],
    [0.5, 'JPY', 1],
    [1234.4999, 'JPY', 1234],
    [1.2345, 'KWD', 1235],
    [1e-7, 'KWD', 0],
    [2.5e-3, 'TND', 3],
  ] as const
  for (const [amount, code, expected] of cases) expect(toMinorUnits(amount, code), `${amount} ${code}`).toBe(expected)
})

test('toMinorUnits returns undefined for values that are no amounts', () => {
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, 1e21, -1e21, 1e14, '10', null, undefined, [10], {}, true])
    expect(toMinorUnits(bad, 'USD'), String(bad)).toBeUndefined()
})

test('parseCurrency accepts ISO 4217 codes in any case, and exponentOf returns their number of decimals', () => {
  expect([' usd ', 'Eur', 'JPY'].map(parseCurrency)).toEqual(['USD', 'EUR', 'JPY'])
  expect(['US', 'XYZW', 'ZZZ', '', 12, null].map(parseCurrency)).toEqual(Array(6).fill(undefined))
  expect(['JPY', 'USD', 'KWD'].map(exponentOf)).toEqual([0, 2, 3])
})

test('an amount survives the conversion from minor units and back', () => {
  checkProperty(
    300,
    fc.property(minor, currency, (amount, code) => {
      expect(toMinorUnits(fromMinorUnits(amount, code), code)).toBe(amount)
    }),
  )
})

test('a discount keeps the price between zero and the full price, and a larger percentage never raises it', () => {
  checkProperty(
    300,
    fc.property(minor, percent, percent, minor, (price, one, other, amount) => {
      const [less, more] = [Math.min(one, other), Math.max(one, other)]
      const [dear, cheap] = [less, more].map((percent) => applyDiscount(price, { type: 'percentage', percent }))
      expect(cheap!).toBeLessThanOrEqual(dear!)
      for (const left of [dear!, cheap!, applyDiscount(price, { type: 'fixed', amount })]) {
        expect(Number.isSafeInteger(left)).toBeTrue()
        expect(left).toBeWithin(0, price + 1)
      }
    }),
  )
})

test('a percentage discount is exact to half a minor unit, and a fixed discount to the unit', () => {
  checkProperty(
    300,
    fc.property(minor, fc.integer({ min: 0, max: 10_000 }), (price, hundredths) => {
      const left = applyDiscount(price, { type: 'percentage', percent: hundredths / 100 })
      const exact = BigInt(price) * BigInt(10_000 - hundredths) * 2n
      const off = exact - BigInt(left) * 20_000n
      expect(off <= 10_000n && off >= -10_000n).toBeTrue()
      expect(applyDiscount(price, { type: 'fixed', amount: hundredths })).toBe(Math.max(0, price - hundredths))
    }),
  )
  expect(applyDiscount(999, { type: 'percentage', percent: 50 })).toBe(500)
  expect(applyDiscount(999, { type: 'percentage', percent: 33.333333 })).toBe(666)
  expect([0, 100].map((percent) => applyDiscount(1999, { type: 'percentage', percent }))).toEqual([1999, 0])
})

test('addSpan ends a month at its last day when the day does not exist, and adds days exactly', () => {
  const addTo = (text: string, value: number, unit: 'days' | 'months' = 'months') =>
    new Date(addSpan(Date.parse(text), { unit, value })).toISOString()
  expect(addTo('2026-01-31T10:20:30.456Z', 1)).toBe('2026-02-28T10:20:30.456Z')
  expect(addTo('2028-01-31T10:20:30.456Z', 1)).toBe('2028-02-29T10:20:30.456Z')
  expect(addTo('2026-08-31T00:00:00.000Z', 6)).toBe('2027-02-28T00:00:00.000Z')
  expect(addTo('2024-02-29T23:59:59.999Z', 12)).toBe('2025-02-28T23:59:59.999Z')
  expect(addTo('2026-12-15T12:00:00.000Z', 2)).toBe('2027-02-15T12:00:00.000Z')
  expect(addTo('2026-12-15T12:00:00.000Z', 30, 'days')).toBe('2027-01-14T12:00:00.000Z')
})
