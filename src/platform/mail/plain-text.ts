import type { TemplateName } from './templates'

const MAX_NAME_LENGTH = 40
const MAX_DEVICE_LENGTH = 120

// Mail programs make links of all of these: addresses of pages, bare domains, and addresses of mail.
const LINK_PATTERN = /:\/\/|www\.|@|[^\s.\u3002][.\u3002]\p{L}{2,}/iu
const PHONE_NUMBER_PATTERN = /(\d\P{L}{0,3}){7,}/u

/** One line of visible characters. */
const toSingleLine = (text: string) =>
  text
    .normalize('NFKC')
    .replace(/[\p{Zs}\p{Zl}\p{Zp}\p{Cc}]+/gu, ' ')
    .replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .trim()

const truncate = (text: string, length: number) => [...text].slice(0, length).join('')

/** A name as mail may show it; empty when it says whom to call or where to click. */
export function toPlainName(text: string): string {
  const name = toSingleLine(text)
  return LINK_PATTERN.test(name) || PHONE_NUMBER_PATTERN.test(name) ? '' : truncate(name, MAX_NAME_LENGTH)
}

/** What a browser calls itself, without the words that mail programs would make links of. */
export const toPlainDevice = (text: string): string =>
  truncate(
    toSingleLine(text)
      .split(' ')
      .filter((word) => !LINK_PATTERN.test(word))
      .join(' '),
    MAX_DEVICE_LENGTH,
  )

/**
 * What a template speaks of, without what strangers would say by it: whoever signs up, invites or signs in makes us write to
 * others. A confirmation code greets nobody, for the name is that of whoever gave the address.
 */
export function toPlainValues(template: TemplateName, values: Record<string, string>): Record<string, string> {
  if (template === 'message') return values
  const { name = '', inviter = '', workspace = '', device = '' } = values
  const impersonal = template === 'verification' || template === 'emailChanged'
  return {
    ...values,
    ...{ name: impersonal ? '' : toPlainName(name), inviter: toPlainName(inviter), workspace: toPlainName(workspace) },
    device: toPlainDevice(device),
  }
}
