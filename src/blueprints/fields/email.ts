import { toAddressKey } from '../../core/text-normalization'
import { type FieldType, fieldType } from './field-type'
import { isTruncated, textKey, textOf } from './index-key-codec'

const EMAIL_PATTERN = /^[^\s@<>,;:"()[\]\\]+@[^\s@<>,;:"()[\]\\]+\.[^\s@<>,;:"()[\]\\.]+$/

export const email = fieldType<string>({
  typescript: 'string',
  jsonSchema: { type: 'string', format: 'email' },
  check: (value) =>
    typeof value === 'string' && value.length <= 254 && EMAIL_PATTERN.test(value)
      ? undefined
      : 'must be an e-mail address',
  toIndexKey: textKey,
  fromIndexKey: textOf,
  losesNotation: isTruncated,
  parse: (text) => text,
  supportsPatterns: true,
  bounds: 'length',
  isSearchable: true,
})

/** An e-mail address that is unique: addresses of the same mailbox are equal, however they are written. */
export const uniqueEmail: FieldType = {
  ...email,
  toIndexKey: (value) => textKey(toAddressKey(value as string)),
  losesNotation: () => true,
}
