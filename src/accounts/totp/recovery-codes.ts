import { sha256 } from '../../core/crypto'
import { encodeBase32 } from './codes'

const RECOVERY_CODE_COUNT = 10

/** Returns ten recovery codes of 80 bits for a user to write down, and their rows for the database. */
export function newRecoveryCodes(user: string) {
  const codes = Array.from({ length: RECOVERY_CODE_COUNT }, () =>
    encodeBase32(crypto.getRandomValues(new Uint8Array(10)))
      .toLowerCase()
      .replace(/.{4}(?=.)/g, '$&-'),
  )
  return { codes, rows: codes.map((code) => ({ hash: hashRecoveryCode(user, code), user })) }
}

/** Returns the same hash however the code is typed: letter case, spaces and dashes do not count. */
export const hashRecoveryCode = (user: string, code: string) =>
  sha256(`${user} ${code.replace(/[^a-z2-7]/gi, '').toLowerCase()}`)
