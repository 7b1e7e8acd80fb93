import type { CellNotation } from './cell-notation'
import { integerSum } from './exact-sum'
import { fieldType } from './field-type'
import { numberKey, numberOf } from './index-key-codec'
import { number } from './number'

/** A whole number that a double holds exactly: up to 2^53 - 1. Queries may compare it with fractions. */
export const integer = fieldType<number>({
  typescript: 'number',
  jsonSchema: { type: 'integer' },
  check: (value) => (Number.isSafeInteger(value) ? undefined : 'must be a whole number between ±(2^53 - 1)'),
  toIndexKey: numberKey,
  fromIndexKey: numberOf,
  exactSum: integerSum,
  parse: number.parse as (text: string) => number | undefined,
  bounds: 'value',
  fromCell: number.fromCell as (cell: string, notation: CellNotation) => number | undefined,
  hasDecimalPoint: true,
})
