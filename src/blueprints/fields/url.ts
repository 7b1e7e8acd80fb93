import type { FieldType } from './field-type'
import { string } from './string'

/** Returns whether a URL is http or https: a link to `javascript:` would run with the rights of the page. */
export const isHttpUrl = (text: string) => /^https?:\/\//i.test(text) && !/\s/.test(text) && URL.canParse(text)

export const url: FieldType = {
  ...string,
  jsonSchema: { type: 'string', format: 'uri' },
  check: (value) =>
    typeof value === 'string' && isHttpUrl(value) ? undefined : 'must be a URL that starts with http:// or https://',
}
