import { createHmac, timingSafeEqual } from 'node:crypto'

/** A text of 256 random bits that nobody can guess (base64url, 43 characters). */
export const generateToken = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')

/** What we keep of a secret that was handed out. SHA-256 suffices, because nobody can try 2^256 of them. */
export const sha256 = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')

/** A text of 256 bits (base64url, 43 characters) that only who has the key can make of another (HMAC-SHA256, RFC 2104). */
export const deriveToken = (key: Uint8Array, text: string) => createHmac('sha256', key).update(text).digest('base64url')

/** Compares in a time that tells nothing about where the texts differ. */
export function isTimingSafeEqual(first: string, second: string) {
  const [a, b] = [Buffer.from(sha256(first)), Buffer.from(sha256(second))]
  return timingSafeEqual(a, b)
}
