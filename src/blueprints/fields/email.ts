import { toAddressKey } from '../../core/text-normalization'
import type { FieldType } from './field-type'
import { textKey } from './index-key-codec'
import { string } from './string'

const EMAIL_PATTERN = /^[^\s@<>,;:"()[\]\\]+@[^\s@<>,;:"()[\]\\]+\.[^\s@<>,;:"()[\]\\.]+$/

export const email: FieldType = {
  ...string,
  jsonSchema: { type: 'string', format: 'email' },
  check: (value) =>
    typeof value === 'string' && value.length <= 254 && EMAIL_PATTERN.test(value)
      ? undefined
      : 'must be an e-mail address',
}

/** An e-mail address that is unique: addresses of the same mailbox are equal, however they are written. */
export const uniqueEmail: FieldType = {
  ...email,
  toIndexKey: (value) => textKey(toAddressKey(value as string)),
  losesNotation: () => true,
}
