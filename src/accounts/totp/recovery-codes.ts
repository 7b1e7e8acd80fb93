import { randomBytes } from 'node:crypto'
import { sha256 } from '../../core/crypto'
import { encodeBase32 } from './codes'

const RECOVERY_CODE_COUNT = 10

/** Returns new recovery codes of 80 bits, and the rows with their hashes. */
export function newRecoveryCodes(user: string) {
  const codes = Array.from({ length: RECOVERY_CODE_COUNT }, () =>
    encodeBase32(randomBytes(10))
      .toLowerCase()
      .replace(/.{4}(?=.)/g, '$&-'),
  )
  return { codes, rows: codes.map((code) => ({ hash: hashRecoveryCode(user, code), user })) }
}

/** Hashes a recovery code, ignoring case and separators. */
export const hashRecoveryCode = (user: string, code: string) =>
  sha256(`${user} ${code.replace(/[^a-z2-7]/gi, '').toLowerCase()}`)
