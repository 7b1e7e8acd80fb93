import { createCipheriv, createDecipheriv } from 'node:crypto'

const [IV, TAG] = [12, 16] // bytes
const TAGGED = { authTagLength: TAG } // a shorter one could be guessed

/** AES-256-GCM (NIST SP 800-38D) by a key of 32 bytes, good only beside what it is `bound` to: vector, tag, and the text. */
export function encrypted(key: Uint8Array, text: string, bound: string): Buffer {
  const iv = crypto.getRandomValues(new Uint8Array(IV))
  const cipher = createCipheriv('aes-256-gcm', key, iv, TAGGED).setAAD(Buffer.from(bound))
  const bytes = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), bytes])
}

/** The text again. @throws for another key, what was bound to something else, and what was tampered with */
export function decrypted(key: Uint8Array, bytes: Buffer, bound: string): string {
  const cipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV), TAGGED).setAAD(Buffer.from(bound))
  cipher.setAuthTag(bytes.subarray(IV, IV + TAG))
  return Buffer.concat([cipher.update(bytes.subarray(IV + TAG)), cipher.final()]).toString('utf8')
}
