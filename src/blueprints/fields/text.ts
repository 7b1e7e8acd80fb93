import { textKey } from './keys'
import { fieldType } from './type'

/** Any text, long or short. */
export const text = fieldType<string>({
  check: (value) => (typeof value === 'string' ? undefined : 'must be text'),
  key: textKey,
  parse: (text) => text,
  bounds: 'length',
  searched: true,
})
