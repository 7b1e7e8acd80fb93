const [IV_BYTES, TAG_BYTES] = [12, 16] // bytes
const GCM_OPTIONS = { authTagLength: TAG_BYTES } // a shorter tag could be guessed

/**
 * Encrypts a text with AES-256-GCM (NIST SP 800-38D) and a key of 32 bytes. Only the same `aad` decrypts it. Returns
 * the initialization vector, the tag and the encrypted text.
 */
export function encrypt(key: Uint8Array, text: string, aad: string): Buffer {
  const { createCipheriv } = process.getBuiltinModule('node:crypto')
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES))
  const cipher = createCipheriv('aes-256-gcm', key, iv, GCM_OPTIONS).setAAD(Buffer.from(aad))
  const bytes = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), bytes])
}

/** Returns the decrypted text. @throws when the key or the `aad` is another, or the bytes were changed */
export function decrypt(key: Uint8Array, bytes: Buffer, aad: string): string {
  const { createDecipheriv } = process.getBuiltinModule('node:crypto')
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), GCM_OPTIONS).setAAD(
    Buffer.from(aad),
  )
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
  return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8')
}
