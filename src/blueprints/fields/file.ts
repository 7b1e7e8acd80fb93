import { isCut, textKey, textOf } from './keys'
import { fieldType } from './type'
import { isWebAddress } from './url'

/** The address of a file: elsewhere (http or https), or a path of this server. */
export const file = fieldType<string>({
  typescript: 'string',
  check: (value) =>
    typeof value === 'string' && (isWebAddress(value) || /^\/(?![/\\])\S*$/.test(value))
      ? undefined
      : 'must be the address of a file: https://… or /…',
  key: textKey,
  value: textOf,
  cut: isCut,
  parse: (text) => text,
  patterned: true,
  bounds: 'length',
})
