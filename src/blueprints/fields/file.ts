import type { FieldType } from './field-type'
import { string } from './string'
import { isHttpUrl } from './url'

/** The URL of a file: http or https, or a path of this server. */
export const file: FieldType = {
  ...string,
  jsonSchema: { type: 'string', format: 'uri-reference' },
  check: (value) =>
    typeof value === 'string' && (isHttpUrl(value) || /^\/(?![/\\])\S*$/.test(value))
      ? undefined
      : 'must be the URL of a file: https://… or /…',
  isSearchable: undefined,
}
