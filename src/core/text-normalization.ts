/** Names are compared without regard to case, width, composition, and invisible characters. */
export const normalizeForLookup = (name: string) => stripInvisible(stripInvisible(name).normalize('NFKC')).toLowerCase()

const stripInvisible = (text: string) => text.replace(/[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\u2800]/gu, '')

/**
 * Returns the key by which e-mail addresses are compared: as names are, and alike whether a domain is written in its own
 * letters or in Punycode.
 */
export function toAddressKey(address: string): string {
  const key = normalizeForLookup(address)
  const at = key.lastIndexOf('@') + 1
  const domain = key.slice(at)
  // Other domains are what they are: the URL rules would read 1.2 as an IP address.
  const isInternational = at > 0 && /[^\0-\x7f]|(^|\.)xn--/.test(domain)
  if (!isInternational) return key
  const { domainToASCII, domainToUnicode } = process.getBuiltinModule('node:url')
  return key.slice(0, at) + (domainToUnicode(domainToASCII(domain)) || domain)
}
