import { fieldType } from './field-type'
import { isTruncated, textKey, textOf } from './sort-keys'

/** Whether a browser may follow it: `javascript:` and the like would run with the page's rights. */
export const isHttpUrl = (text: string) => /^https?:\/\//i.test(text) && !/\s/.test(text) && URL.canParse(text)

export const url = fieldType<string>({
  typescript: 'string',
  check: (value) =>
    typeof value === 'string' && isHttpUrl(value) ? undefined : 'must be a URL that starts with http:// or https://',
  toIndexKey: textKey,
  fromIndexKey: textOf,
  isTruncated: isTruncated,
  parse: (text) => text,
  supportsPatterns: true,
  bounds: 'length',
  isSearchable: true,
})
