import { decimalOf, numberOf } from './sort-keys'

/**
 * How the values of a kind are added up: as whole numbers of a unit so small that nothing is ever rounded on the way, so
 * that the order does not matter.
 */
export type ExactSum = {
  /** The value behind a key, in units. */
  units(key: string): bigint
  /** A sum as it is answered: a number, or text when no number says it. */
  format(units: bigint): number | string
}

/** Integers, in ones. Beyond 2^53 - 1 the sum is text. */
export const integerSum: ExactSum = {
  units: (key) => BigInt(numberOf(key)),
  format: (units) => (Number.isSafeInteger(Number(units)) ? Number(units) : `${units}`),
}

const DECIMAL_PLACES = 60 // after the point, as many as a decimal may have
const EXACT_DOUBLE_DIGITS = 15 // that a double is sure to keep

/** Decimals, in 60th places. The sum is a number when that is written with the same digits, else text. */
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

const MIN_DOUBLE_EXPONENT = -1074 // the exponent of the least double: each double is a whole number of 2^-1074
const doubleView = new DataView(new ArrayBuffer(8))

/** Doubles, in the least of them. The sum is rounded once, to the nearest double. */
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
    // What is cut off still decides between two neighbours when it is exactly in the middle without it.
    const stickyBit = mantissa << BigInt(shift) === size ? 0n : 1n
    const number = Number(mantissa | stickyBit) * 2 ** (shift + MIN_DOUBLE_EXPONENT)
    if (!Number.isFinite(number)) return `${units / (1n << BigInt(-MIN_DOUBLE_EXPONENT))}`
    return units < 0n ? -number : number
  },
}
