import { sha256 } from '../../core/crypto'

export const MAX_FULL_TEXT_CHARACTERS = 256 // the key of a longer text is its start and a hash

/** Returns the index key of a text. Equality is exact; texts that share 256 characters have an arbitrary order. */
export function textKey(value: string): string {
  if (value.length <= MAX_FULL_TEXT_CHARACTERS) return value
  // Do not cut a surrogate pair.
  const end = /[\ud800-\udbff]/.test(value[MAX_FULL_TEXT_CHARACTERS - 1]!)
    ? MAX_FULL_TEXT_CHARACTERS + 1
    : MAX_FULL_TEXT_CHARACTERS
  return `${value.slice(0, end)}\u0001${sha256(value)}`
}

export const isTruncated = (key: string) => key.length > MAX_FULL_TEXT_CHARACTERS

/** Returns the beginning of the text in a truncated index key. */
export const truncatedPrefix = (key: string) => key.slice(0, key.lastIndexOf('\u0001'))

/** Returns the text of an index key, or its beginning and `…`. */
export const textOf = (key: string) => (isTruncated(key) ? `${truncatedPrefix(key)}…` : key)

const doubleBytes = Buffer.alloc(8)
const doubleView = new DataView(doubleBytes.buffer, doubleBytes.byteOffset, 8)
const CACHED_INTEGERS = 4_096 // from 0 on, whose keys are cached
const smallNumberKeys: string[] = []

/** Returns the index key of a double: its bits in hexadecimal, ordered as numbers are, without trailing zeros. */
export function numberKey(value: number): string {
  if (!(value >= 0 && value < CACHED_INTEGERS && Number.isInteger(value))) return toNumberKey(value)
  smallNumberKeys[value] ??= toNumberKey(value)
  return smallNumberKeys[value]
}

function toNumberKey(value: number): string {
  doubleView.setFloat64(0, value || 0) // -0 is 0
  const [high, low] = [doubleView.getInt32(0), doubleView.getInt32(4)]
  doubleView.setInt32(0, high < 0 ? ~high : high | 0x80000000)
  if (high < 0) doubleView.setInt32(4, ~low)
  let end = 8
  while (doubleBytes[end - 1] === 0) end--
  const key = doubleBytes.toString('hex', 0, end)
  return key.endsWith('0') ? key.slice(0, -1) : key
}

/** Returns the number of an index key. */
export function numberOf(key: string): number {
  const bits = key.padEnd(16, '0')
  const [first, second] = [Number.parseInt(bits.slice(0, 8), 16), Number.parseInt(bits.slice(8), 16)]
  const positive = first >>> 31
  doubleView.setUint32(0, positive ? first & 0x7fffffff : ~first)
  doubleView.setUint32(4, positive ? second : ~second)
  return doubleView.getFloat64(0)
}

const complement = (digits: string) => digits.replace(/\d/g, (digit) => `${9 - Number(digit)}`)

/** Returns the index key of a decimal: sign, 500 + digits before the point, the digits; complemented if negative. */
export function decimalKey(value: string): string {
  const [, minus, whole = '', part = ''] = value.match(/^(-?)0*(\d*)\.?(\d*)$/)!
  const digits = (whole + part).replace(/^0+/, '').replace(/0+$/, '')
  if (!digits) return '1000'
  const exponent = whole.length || -part.search(/[1-9]/)
  const size = String(500 + exponent).padStart(3, '0')
  // The tilde sorts after all digits: of two negative numbers with the same beginning, the longer one is smaller.
  return minus ? `0${complement(size + digits)}~` : `1${size}${digits}`
}

/** Returns the decimal of an index key, without leading and trailing zeros. */
export function decimalOf(key: string): string {
  const minus = key.startsWith('0')
  const text = minus ? complement(key.slice(1, -1)) : key.slice(1)
  const [exponent, digits] = [Number(text.slice(0, 3)) - 500, text.slice(3)]
  if (!digits) return '0'
  const whole = exponent > 0 ? digits.slice(0, exponent).padEnd(exponent, '0') : '0'
  const part = exponent > 0 ? digits.slice(exponent) : digits.padStart(digits.length - exponent, '0')
  return `${minus ? '-' : ''}${whole}${part && `.${part}`}`
}
