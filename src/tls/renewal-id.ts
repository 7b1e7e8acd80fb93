const AUTHORITY_KEY_ID = Buffer.from('0603551d23', 'hex') // the OID 2.5.29.35 in DER

/**
 * Returns the name of a certificate (PEM) where its authority suggests renewals (RFC 9773): its authority's key and its
 * serial number. Undefined when it does not name the key.
 */
export function toRenewalId(chain: string): string | undefined {
  const { X509Certificate } = process.getBuiltinModule('node:crypto')
  const { raw, serialNumber } = new X509Certificate(chain)
  const key = readAuthorityKey(raw)
  const hex = serialNumber.length % 2 ? `0${serialNumber}` : serialNumber
  // DER marks a number whose first bit is set as positive.
  const serial = Buffer.from(/^[89a-f]/i.test(hex) ? `00${hex}` : hex, 'hex')
  return key && `${key.toString('base64url')}.${serial.toString('base64url')}`
}

/** Reads OCTET STRING { SEQUENCE { [0] key, … } }, whose lengths are below 128. */
function readAuthorityKey(raw: Buffer): Buffer | undefined {
  const at = raw.indexOf(AUTHORITY_KEY_ID)
  const value = at < 0 ? raw.subarray(0, 0) : raw.subarray(at + AUTHORITY_KEY_ID.length)
  const [text, , list, , key, length = 0] = value
  return text === 0x04 && list === 0x30 && key === 0x80 ? value.subarray(6, 6 + length) : undefined
}
