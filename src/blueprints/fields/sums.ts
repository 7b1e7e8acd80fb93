import { decimalOf, numberOf } from './keys'

/**
 * How the values of a kind are added up: as whole numbers of a unit so small that nothing is ever rounded on the way, so
 * that the order does not matter.
 */
export type Addition = {
  /** The value behind a key, in units. */
  units(key: string): bigint
  /** A sum as it is answered: a number, or text when no number says it. */
  told(units: bigint): number | string
}

/** Integers, in ones. Beyond 2^53 - 1 the sum is text. */
export const wholes: Addition = {
  units: (key) => BigInt(numberOf(key)),
  told: (units) => (Number.isSafeInteger(Number(units)) ? Number(units) : `${units}`),
}

const PLACES = 60 // after the point, as many as a decimal may have
const DIGITS = 15 // that a double is sure to keep

/** Decimals, in 60th places. The sum is a number when that is written with the same digits, else text. */
export const decimals: Addition = {
  units(key) {
    const [whole = '', part = ''] = decimalOf(key).split('.')
    return BigInt(whole + part.padEnd(PLACES, '0'))
  },
  told(units) {
    const digits = `${units < 0n ? -units : units}`.padStart(PLACES + 1, '0')
    const part = digits.slice(-PLACES).replace(/0+$/, '')
    const text = `${units < 0n ? '-' : ''}${digits.slice(0, -PLACES)}${part && `.${part}`}`
    const few = digits.replace(/^0+|0+$/g, '').length <= DIGITS
    return few || `${Number(text)}` === text ? Number(text) : text
  },
}

const LEAST = -1074 // the exponent of the least double: each double is a whole number of 2^-1074
const view = new DataView(new ArrayBuffer(8))

/** Doubles, in the least of them. The sum is rounded once, to the nearest double. */
export const doubles: Addition = {
  units(key) {
    view.setFloat64(0, numberOf(key))
    const high = view.getUint32(0)
    const [exponent, fraction] = [(high >>> 20) & 0x7ff, (BigInt(high & 0xfffff) << 32n) | BigInt(view.getUint32(4))]
    const size = exponent ? ((1n << 52n) | fraction) << BigInt(exponent - 1) : fraction
    return high >>> 31 ? -size : size
  },
  told(units) {
    const size = units < 0n ? -units : units
    const spare = Math.max(0, size.toString(2).length - 64)
    const kept = size >> BigInt(spare)
    // What is cut off still decides between two neighbours when it is exactly in the middle without it.
    const rest = kept << BigInt(spare) === size ? 0n : 1n
    const number = Number(kept | rest) * 2 ** (spare + LEAST)
    if (!Number.isFinite(number)) return `${units / (1n << BigInt(-LEAST))}`
    return units < 0n ? -number : number
  },
}
