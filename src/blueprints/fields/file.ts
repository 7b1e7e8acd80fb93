import { fieldType } from './field-type'
import { isTruncated, textKey, textOf } from './index-key-codec'
import { isHttpUrl } from './url'

/** The URL of a file: http or https, or a path of this server. */
export const file = fieldType<string>({
  typescript: 'string',
  jsonSchema: { type: 'string', format: 'uri-reference' },
  check: (value) =>
    typeof value === 'string' && (isHttpUrl(value) || /^\/(?![/\\])\S*$/.test(value))
      ? undefined
      : 'must be the URL of a file: https://… or /…',
  toIndexKey: textKey,
  fromIndexKey: textOf,
  losesNotation: isTruncated,
  parse: (text) => text,
  supportsPatterns: true,
  bounds: 'length',
})
