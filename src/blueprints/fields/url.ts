import { isCut, textKey, textOf } from './keys'
import { fieldType } from './type'

/** Whether a browser may follow it: `javascript:` and the like would run with the page's rights. */
export const isWebAddress = (text: string) => /^https?:\/\//i.test(text) && !/\s/.test(text) && URL.canParse(text)

export const url = fieldType<string>({
  typescript: 'string',
  check: (value) =>
    typeof value === 'string' && isWebAddress(value) ? undefined : 'must be an address that starts with http(s)://',
  key: textKey,
  value: textOf,
  cut: isCut,
  parse: (text) => text,
  patterned: true,
  bounds: 'length',
  searched: true,
})
