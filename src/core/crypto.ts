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
export const deriveToken = (key: Uint8Array, text: string) => hmac('sha256', key, text).toString('base64url')

/** Returns the HMAC of a text or of bytes (RFC 2104). */
export const hmac = (hash: 'sha1' | 'sha256', key: string | Uint8Array, content: string | Uint8Array): Buffer =>
  new Bun.CryptoHasher(hash, key).update(content).digest()

/**
 * Derives a key of 32 bytes from another one by HKDF-SHA256 (RFC 5869), which reveals nothing about that key and about
 * those that are derived for another salt and purpose.
 */
export const deriveKeyBytes = (key: string, salt: string, purpose: string): Uint8Array =>
  new Uint8Array(hmac('sha256', hmac('sha256', salt, key), `${purpose}\x01`))

/** Tells whether two texts are equal, in a time that does not reveal where they differ. */
export function isTimingSafeEqual(first: string, second: string) {
  const [a, b] = [Buffer.from(sha256(first)), Buffer.from(sha256(second))]
  return crypto.timingSafeEqual(a, b)
}
