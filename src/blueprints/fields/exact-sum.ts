import { decimalOf, numberOf } from './index-key-codec'

/**
 * Adds values of a field type exactly, as integer multiples of a unit so small that nothing is rounded. The order of
 * the values therefore does not matter.
 */
export type ExactSum = {
  /** Returns the value of an index key in units. */
  units(key: string): bigint
  /** Returns a sum for the response: a number, or text when a number cannot hold it. */
  format(units: bigint): number | string
}

/** Integers; the unit is 1. Beyond 2^53 - 1 the sum is text. */
export const integerSum: ExactSum = {
  units: (key) => BigInt(numberOf(key)),
  format: (units) => (Number.isSafeInteger(Number(units)) ? Number(units) : `${units}`),
}

const DECIMAL_PLACES = 60 // the maximum of a decimal
const EXACT_DOUBLE_DIGITS = 15 // significant digits that every double preserves

/** Decimals; the unit is 10^-60. The sum is a number when that prints the same digits, otherwise text. */
export const decimalSum: ExactSum = {
  units(key) {
    const [whole = '', part = ''] = decimalOf(key).split('.')
    return BigInt(whole + part.padEnd(DECIMAL_PLACES, '0'))
  },
  format(units) {
    const digits = `${units < 0n ? -units : units}`.padStart(DECIMAL_PLACES + 1, '0')
    const part = digits.slice(-DECIMAL_PLACES).replace(/0+$/, '')
    const text = `${units < 0n ? '-' : ''}${digits.slice(0, -DECIMAL_PLACES)}${part && `.${part}`}`
    const fitsDouble = digits.replace(/^0+|0+$/g, '').length <= EXACT_DOUBLE_DIGITS
    return fitsDouble || `${Number(text)}` === text ? Number(text) : text
  },
}

const MIN_DOUBLE_EXPONENT = -1074 // the smallest double is 2^-1074; each double is a multiple of it
const doubleView = new DataView(new ArrayBuffer(8))

/** Doubles; the unit is 2^-1074. The sum is rounded once, to the nearest double. */
export const doubleSum: ExactSum = {
  units(key) {
    doubleView.setFloat64(0, numberOf(key))
    const high = doubleView.getUint32(0)
    const [exponent, fraction] = [
      (high >>> 20) & 0x7ff,
      (BigInt(high & 0xfffff) << 32n) | BigInt(doubleView.getUint32(4)),
    ]
    const size = exponent ? ((1n << 52n) | fraction) << BigInt(exponent - 1) : fraction
    return high >>> 31 ? -size : size
  },
  format(units) {
    const size = units < 0n ? -units : units
    const shift = Math.max(0, size.toString(2).length - 64)
    const mantissa = size >> BigInt(shift)
    // The sticky bit stands for the cut-off bits: they decide when the rest is exactly between two doubles.
    const stickyBit = mantissa << BigInt(shift) === size ? 0n : 1n
    const number = Number(mantissa | stickyBit) * 2 ** (shift + MIN_DOUBLE_EXPONENT)
    if (!Number.isFinite(number)) return `${units / (1n << BigInt(-MIN_DOUBLE_EXPONENT))}`
    return units < 0n ? -number : number
  },
}
