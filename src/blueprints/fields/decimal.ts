import { toPlainDecimal } from './cell-notation'
import { decimalSum } from './exact-sum'
import { fieldType } from './field-type'
import { decimalKey, decimalOf } from './index-key-codec'
import { readNumber } from './number-cell'

const DECIMAL_PATTERN = /^-?\d{1,60}(\.\d{1,60})?$/

/** An exact number, written as text: "19.90" keeps its digits. */
export const decimal = fieldType<string>({
  typescript: 'string',
  filterTypescript: 'number', // an entity has a decimal as text, but a filter may also be a number
  jsonSchema: { type: 'string', pattern: DECIMAL_PATTERN.source },
  check: (value) =>
    typeof value === 'string' && DECIMAL_PATTERN.test(value)
      ? undefined
      : 'must be a decimal number as text, such as "19.90"',
  toIndexKey: decimalKey,
  fromIndexKey: decimalOf,
  losesNotation: () => true, // a key has no leading and trailing zeros
  exactSum: decimalSum,
  parse: (text) => (DECIMAL_PATTERN.test(text) ? text : undefined),
  bounds: 'value',
  parseBound: (written) => (typeof written === 'number' ? `${written}` : undefined),
  fromCell: (cell, notation) => {
    const text = readNumber(cell, notation)
    return text === undefined || DECIMAL_PATTERN.test(text) ? text : toPlainDecimal(text)
  },
  hasDecimalPoint: true,
})
