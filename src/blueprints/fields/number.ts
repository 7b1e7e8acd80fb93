import { isExact } from '../../core/exact-numbers'
import { doubleSum } from './exact-sum'
import { fieldType } from './field-type'
import { numberKey, numberOf } from './index-key-codec'
import { readNumber, readShortInteger } from './number-cell'

/** A double-precision number. */
export const number = fieldType<number>({
  typescript: 'number',
  jsonSchema: { type: 'number' },
  check: (value) => (Number.isFinite(value) ? undefined : 'must be a number'),
  toIndexKey: numberKey,
  fromIndexKey: numberOf,
  exactSum: doubleSum,
  parse: (text) =>
    text.length < 400 && /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text) && isExact(text)
      ? Number(text)
      : undefined,
  bounds: 'value',
  fromCell: (cell, notation) => {
    const short = readShortInteger(cell)
    if (short !== undefined) return short
    const text = readNumber(cell, notation)
    return text === undefined || !isExact(text) ? undefined : Number(text)
  },
  hasDecimalPoint: true,
})
