import { isCut, textKey, textOf } from './keys'
import { fieldType } from './type'

/** Any text, long or short. */
export const text = fieldType<string>({
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
