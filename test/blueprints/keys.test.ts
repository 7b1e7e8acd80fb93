import { expect, test } from 'bun:test'
import { decimalKey, numberKey, numberOf, textKey } from '../../src/blueprints/fields/keys'
import { byBytes, compare, exactly, random } from './random'

const SEED = 20_260_131
const RUNS = 20_000

const bits = new DataView(new ArrayBuffer(8))
const doubleOf = (high: number, low: number) => {
  bits.setUint32(0, high)
  bits.setUint32(4, low)
  return bits.getFloat64(0)
}

const doubles = [
  ...[0, 1, 2, 9, 10, 15, 16, 17, 255, 256, 1e21, 2 ** 31, 2 ** 32, 2 ** 53 - 1, 2 ** 53, 0.1, 0.2, 0.1 + 0.2, 1 / 3],
  ...[Number.MAX_VALUE, Number.MIN_VALUE, Number.EPSILON, 2.2250738585072014e-308, 1.5, 19.9, 19.99, 1e-7, 1e300],
]
const numbers = [...doubles, ...doubles.map((value) => -value)]

function anyNumber({ below, chance, pick }: ReturnType<typeof random>): number {
  if (chance(0.2)) return pick(numbers)
  if (chance(0.3)) return (below(2_000) - 1_000) / pick([1, 10, 100, 3])
  const value = doubleOf(below(2 ** 32), chance(0.3) ? 0 : below(2 ** 32))
  return Number.isFinite(value) ? value : 0
}

test('the keys of numbers are ordered as the numbers are, and equal only for equal ones', () => {
  const source = random(SEED)
  for (let run = 0; run < RUNS; run++) {
    const [one, other] = [anyNumber(source), anyNumber(source)]
    expect(byBytes(numberKey(one), numberKey(other)), `seed ${SEED}: ${one} and ${other}`).toBe(compare(one, other))
  }
})

test('special numbers are in order, too: huge, tiny, negative, and one zero whatever its sign', () => {
  for (const one of numbers)
    for (const other of numbers)
      expect(byBytes(numberKey(one), numberKey(other)), `${one} and ${other}`).toBe(compare(one, other))
  expect(numberKey(-0)).toBe(numberKey(0))
})

test('a number can be read from its key', () => {
  const source = random(SEED + 1)
  for (const value of numbers) expect(numberOf(numberKey(value))).toBe(value || 0)
  for (let run = 0; run < RUNS; run++) {
    const value = anyNumber(source)
    expect(numberOf(numberKey(value)), `seed ${SEED + 1}: ${value}`).toBe(value || 0)
  }
})

const DIGITS = [...'0123456789']

function anyDecimal({ text, chance, pick, below }: ReturnType<typeof random>): string {
  const digits = (most: number) => text(chance(0.3) ? ['0', '9'] : DIGITS, most)
  const whole = digits(pick([1, 2, 3, 59])) || '0'
  const part = '0'.repeat(chance(0.2) ? below(30) : 0) + digits(pick([0, 1, 2, 30]))
  return `${chance(0.5) ? '-' : ''}${whole}${part && `.${part}`}`
}

test('the keys of decimals are ordered as the decimals are, and equal only for equal ones', () => {
  const source = random(SEED + 2)
  for (let run = 0; run < RUNS; run++) {
    const one = anyDecimal(source)
    // Often a near one: the same with more digits, or turned around.
    const near = [`${one}${one.includes('.') ? '' : '.'}${source.below(20)}`, one.replace('-', ''), `-${one}`]
    const other = source.chance(0.3) ? source.pick(near).replace('--', '') : anyDecimal(source)
    expect(byBytes(decimalKey(one), decimalKey(other)), `seed ${SEED + 2}: ${one} and ${other}`).toBe(
      compare(exactly(one), exactly(other)),
    )
  }
})

test('decimals in ascending order, of every sign and size', () => {
  const [nines, zeros] = ['9'.repeat(60), '0'.repeat(59)]
  const sizes = [`0.${zeros}1`, `0.${zeros}2`, '0.009', '0.01', '0.0100001', '0.099', '0.1', '0.5', '0.9', '1', '1.05']
  sizes.push('1.5', '9', '9.99', '10', '10.01', '99', '100', `1${zeros}`, nines, `${nines}.${nines}`)
  const all = [...sizes.map((size) => `-${size}`).reverse(), '0', ...sizes]
  expect([...all].sort((one, other) => byBytes(decimalKey(one), decimalKey(other)))).toEqual(all)
  expect(new Set(all.map(decimalKey)).size).toBe(all.length)
})

test.each([
  [['0', '-0', '0.000', '-000.0', '00']],
  [['1', '1.0', '01', '001.000']],
  [['-19.9', '-19.90', '-019.900']],
  [['1000', '1000.0', '0001000']],
  [['0.001', '0.0010', '00.001']],
])('decimals that say the same have one key: %s', (same) => {
  expect(new Set(same.map(decimalKey)).size).toBe(1)
})

// Of these, UTF-16 and UTF-8 sort some differently.
const CHARACTERS = ['a', 'b', 'Z', ' ', '\u0001', '\u007f', 'é', 'ß', '中', '\ue000', '\uffff', '😀', '𐀀', '\u{10ffff}']

test('the keys of texts are ordered by code points, and equal only for equal texts', () => {
  const source = random(SEED + 3)
  for (let run = 0; run < RUNS; run++) {
    const [one, other] = [source.text(CHARACTERS, 4), source.text(CHARACTERS, 4)]
    expect(byBytes(textKey(one), textKey(other)), `seed ${SEED + 3}: ${JSON.stringify([one, other])}`).toBe(
      byBytes(one, other),
    )
  }
})

test('long texts have keys of bounded size, which are equal only for equal texts and are well-formed', () => {
  const source = random(SEED + 4)
  for (let run = 0; run < 500; run++) {
    const start = 'x'.repeat(240 + source.below(20))
    const [one, other] = [start + source.text(CHARACTERS, 20), start + source.text(CHARACTERS, 20)]
    const [key, another] = [textKey(one), textKey(other)]
    expect(key === another, `seed ${SEED + 4}: ${JSON.stringify([one, other])}`).toBe(one === other)
    expect(key.isWellFormed(), JSON.stringify(one)).toBe(true)
    expect(key.length).toBeLessThan(350)
  }
  expect(textKey('y'.repeat(100_000)).length).toBeLessThan(350)
  expect(textKey(`${'y'.repeat(100_000)}1`)).not.toBe(textKey(`${'y'.repeat(100_000)}2`))
})

test('texts that differ within their first 256 characters are in the order of that difference, however long', () => {
  const source = random(SEED + 5)
  for (let run = 0; run < RUNS / 4; run++) {
    const start = 'x'.repeat(source.pick([0, 1, 100, 253, 254, 255]))
    const tail = () => source.pick(CHARACTERS) + 'y'.repeat(source.pick([0, 1, 300]))
    const [one, other] = [start + tail(), start + tail()]
    if (one[start.length] === other[start.length]) continue
    expect(byBytes(textKey(one), textKey(other)), `seed ${SEED + 5}: ${JSON.stringify([one, other])}`).toBe(
      byBytes(one, other),
    )
  }
})
