import { decimalKey, decimalOf } from './keys'
import { decimals } from './sums'
import { fieldType } from './type'

const FORM = /^-?\d{1,60}(\.\d{1,60})?$/

/** An exact number, written as text: "19.90" keeps its digits. */
export const decimal = fieldType<string>({
  typescript: 'string',
  check: (value) =>
    typeof value === 'string' && FORM.test(value) ? undefined : 'must be a decimal number as text, such as "19.90"',
  key: decimalKey,
  value: decimalOf,
  cut: () => true, // its zeros
  addition: decimals,
  parse: (text) => (FORM.test(text) ? text : undefined),
  bounds: 'value',
  bound: (written) => (typeof written === 'number' ? `${written}` : undefined),
})
