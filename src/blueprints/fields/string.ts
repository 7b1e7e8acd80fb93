import { isCut, textKey, textOf } from './keys'
import { fieldType } from './type'

/** A short text, such as a name or a title. */
export const string = fieldType<string>({
  typescript: 'string',
  check: (value) => (typeof value === 'string' ? undefined : 'must be text'),
  key: textKey,
  value: textOf,
  cut: isCut,
  parse: (text) => text,
  patterned: true,
  bounds: 'length',
  searched: true,
})
