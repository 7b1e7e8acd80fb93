import { isCut, textKey, textOf } from './keys'
import { fieldType } from './type'

const FORM = /^[^\s@<>,;:"()[\]\\]+@[^\s@<>,;:"()[\]\\]+\.[^\s@<>,;:"()[\]\\.]+$/

export const email = fieldType<string>({
  typescript: 'string',
  check: (value) =>
    typeof value === 'string' && value.length <= 254 && FORM.test(value) ? undefined : 'must be an e-mail address',
  key: textKey,
  value: textOf,
  cut: isCut,
  parse: (text) => text,
  patterned: true,
  bounds: 'length',
  searched: true,
})
