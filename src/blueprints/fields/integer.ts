import { numberKey, numberOf } from './keys'
import { number } from './number'
import { wholes } from './sums'
import { fieldType } from './type'

/** A whole number that a double holds exactly: up to 2^53 - 1. Queries may compare it with fractions. */
export const integer = fieldType<number>({
  typescript: 'number',
  check: (value) => (Number.isSafeInteger(value) ? undefined : 'must be a whole number between ±(2^53 - 1)'),
  key: numberKey,
  value: numberOf,
  addition: wholes,
  parse: number.parse as (text: string) => number | undefined,
  bounds: 'value',
})
