import { fieldType } from './field-type'
import { isTruncated, textKey, textOf } from './index-key-codec'

/** Any text, long or short. */
export const text = fieldType<string>({
  typescript: 'string',
  jsonSchema: { type: 'string' },
  check: (value) => (typeof value === 'string' ? undefined : 'must be text'),
  toIndexKey: textKey,
  fromIndexKey: textOf,
  losesNotation: isTruncated,
  parse: (text) => text,
  supportsPatterns: true,
  bounds: 'length',
  isSearchable: true,
})
