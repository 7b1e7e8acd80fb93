import { hmac, isTimingSafeEqual } from '../../core/crypto'

const STEP_MS = 30_000
const CODE_DIGITS = 6
const BASE32_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Returns a new secret for an authenticator app: 160 bits (RFC 4226 §4) in base32. */
export const newSecret = () => encodeBase32(crypto.getRandomValues(new Uint8Array(20)))

/** Returns the code of a time step (RFC 6238, with the truncation of RFC 4226 §5.3). */
export function codeAt(key: Uint8Array, step: number, digits = CODE_DIGITS): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const digest = hmac('sha1', key, counter)
  const number = digest.readUInt32BE(digest[19]! & 15) & 0x7f_ff_ff_ff
  return `${number % 10 ** digits}`.padStart(digits, '0')
}

/** Returns the number of the 30-second step that contains a time (ms). */
export const stepAt = (ms: number) => Math.floor(ms / STEP_MS)

/** Returns the step of a code, or undefined. Clocks and users may be half a minute late or early. */
export function findMatchingStep(secret: string, code: string, time: number): number | undefined {
  const key = decodeBase32(secret)
  const now = stepAt(time)
  return [now, now - 1, now + 1].find((step) => isTimingSafeEqual(codeAt(key, step), code))
}

/** Returns what an authenticator app reads from a QR code (the Key Uri Format of Google Authenticator). */
export function toOtpauthUri(secret: string, issuer: string, account: string): string {
  const query = Object.entries({ secret, issuer, algorithm: 'SHA1', digits: CODE_DIGITS, period: STEP_MS / 1000 })
  const label = [issuer, account].map(encodeURIComponent).join(':')
  return `otpauth://totp/${label}?${query.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&')}`
}

/** Encodes bytes as base32 (RFC 4648 §6) without padding. */
export function encodeBase32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return bits.replace(/.{1,5}/g, (five) => BASE32_ALPHABET[Number.parseInt(five.padEnd(5, '0'), 2)]!)
}

/** Decodes base32 without padding, in upper case. */
export function decodeBase32(text: string): Uint8Array {
  const bits = [...text].map((sign) => BASE32_ALPHABET.indexOf(sign).toString(2).padStart(5, '0')).join('')
  return Uint8Array.from(bits.match(/.{8}/g) ?? [], (byte) => Number.parseInt(byte, 2))
}
