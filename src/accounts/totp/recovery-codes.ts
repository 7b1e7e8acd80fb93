import { randomBytes } from 'node:crypto'
import { hashed } from '../../core/secret'
import { base32 } from './codes'

const MANY = 10

/** Codes of 80 bits for a user to write down, and the rows that know them again. */
export function newRecoveryCodes(user: string) {
  const codes = Array.from({ length: MANY }, () =>
    base32(randomBytes(10))
      .toLowerCase()
      .replace(/.{4}(?=.)/g, '$&-'),
  )
  return { codes, rows: codes.map((code) => ({ hash: hashOf(user, code), user })) }
}

/** However it is typed. */
export const hashOf = (user: string, code: string) => hashed(`${user} ${code.replace(/[^a-z2-7]/gi, '').toLowerCase()}`)
