import { createHmac, timingSafeEqual } from 'node:crypto'

/** Returns 256 random bits (base64url, 43 characters). */
export const generateToken = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')

/**
 * Returns the SHA-256 of a text (hex), which is stored in place of an issued token. SHA-256 suffices, because 256
 * random bits cannot be guessed.
 */
export const sha256 = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')

/**
 * Returns the HMAC-SHA256 of a text (RFC 2104; base64url, 43 characters), which only a holder of the key can compute.
 */
export const deriveToken = (key: Uint8Array, text: string) => createHmac('sha256', key).update(text).digest('base64url')

/** Tells whether two texts are equal, in a time that does not reveal where they differ. */
export function isTimingSafeEqual(first: string, second: string) {
  const [a, b] = [Buffer.from(sha256(first)), Buffer.from(sha256(second))]
  return timingSafeEqual(a, b)
}
