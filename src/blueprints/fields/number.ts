import { numberKey, numberOf } from './keys'
import { doubles } from './sums'
import { fieldType } from './type'

/** A double-precision number. */
export const number = fieldType<number>({
  typescript: 'number',
  check: (value) => (Number.isFinite(value) ? undefined : 'must be a number'),
  key: numberKey,
  value: numberOf,
  addition: doubles,
  parse: (text) =>
    text.length < 400 && /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text))
      ? Number(text)
      : undefined,
  bounds: 'value',
})
