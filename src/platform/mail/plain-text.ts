import type { TemplateName } from './templates'

const MAX_NAME_LENGTH = 40
const MAX_DEVICE_LENGTH = 120

// Mail programs turn all of these into links: URLs, bare domains and e-mail addresses.
const LINK_PATTERN = /:\/\/|www\.|@|[^\s.\u3002][.\u3002]\p{L}{2,}/iu
const PHONE_NUMBER_PATTERN = /(\d\P{L}{0,3}){7,}/u

/** Returns one line of visible characters. */
const toSingleLine = (text: string) =>
  text
    .normalize('NFKC')
    .replace(/[\p{Zs}\p{Zl}\p{Zp}\p{Cc}]+/gu, ' ')
    .replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .trim()

const truncate = (text: string, length: number) => [...text].slice(0, length).join('')

/** Returns a name that is safe in mail; empty when it contains a link or a phone number. */
export function toPlainName(text: string): string {
  const name = toSingleLine(text)
  return LINK_PATTERN.test(name) || PHONE_NUMBER_PATTERN.test(name) ? '' : truncate(name, MAX_NAME_LENGTH)
}

/** Returns the name of a browser without the words that mail programs would turn into links. */
export const toPlainDevice = (text: string): string =>
  truncate(
    toSingleLine(text)
      .split(' ')
      .filter((word) => !LINK_PATTERN.test(word))
      .join(' '),
    MAX_DEVICE_LENGTH,
  )

const IMPERSONAL: TemplateName[] = ['verification', 'emailChanged', 'passwordRemoved']

/**
 * Returns the values of a template without text that strangers could use to send messages: a sign-up, an invitation or
 * a sign-in makes us write to others. Mails about an address that was not confirmed contain no name, because the person
 * who entered the address chose the name.
 */
export function toPlainValues(template: TemplateName, values: Record<string, string>): Record<string, string> {
  if (template === 'message') return values
  const { name = '', inviter = '', workspace = '', device = '' } = values
  const impersonal = IMPERSONAL.includes(template)
  return {
    ...values,
    ...{ name: impersonal ? '' : toPlainName(name), inviter: toPlainName(inviter), workspace: toPlainName(workspace) },
    device: toPlainDevice(device),
  }
}
