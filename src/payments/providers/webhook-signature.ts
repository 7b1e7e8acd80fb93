import { now } from '../../core/clock'

/** How much the timestamp of a signature may differ from the current time, in seconds. */
export const SIGNATURE_TOLERANCE_SECONDS = 300

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Returns the text of a body byte for byte, or undefined if it is not valid UTF-8. */
export function decodeUtf8(raw: Uint8Array): string | undefined {
  try {
    return decoder.decode(raw)
  } catch {
    return undefined
  }
}

/** Returns whether a time (seconds since 1970) is now, within the tolerance. */
export const isFresh = (seconds: number) => Math.abs(now() / 1000 - seconds) <= SIGNATURE_TOLERANCE_SECONDS

/** Returns the configured secrets: one, or several during a rotation. */
export const toSecretList = (secrets: string | string[] | undefined) => (secrets ? [secrets].flat() : [])

/** Returns the HMAC-SHA256 in hex. */
export const hmac = (secret: string, ...parts: (string | Uint8Array)[]) => {
  const hasher = new Bun.CryptoHasher('sha256', secret)
  for (const part of parts) hasher.update(part)
  return hasher.digest('hex')
}
