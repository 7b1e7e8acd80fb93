import { isTimingSafeEqual, sha256 } from '../core/crypto'
import { Problem } from '../core/problem'

const CODE_DIGITS = 8

/** How often the code of a mail can be entered. */
export const MAX_CODE_TRIES = 5

/** Returns a code that people type from a mail. */
export function generateCode(): string {
  const { randomInt } = process.getBuiltinModule('node:crypto')
  return `${randomInt(10 ** CODE_DIGITS)}`.padStart(CODE_DIGITS, '0')
}

/** Tells whether a typed code has this hash. People copy codes with the spaces around them. */
export const isCode = (hash: string | null, code: string) =>
  hash !== null && isTimingSafeEqual(hash, sha256(code.replace(/\s/g, '')))

/** Returns what a wrong code is answered with. */
export const wrongCode = (status: 400 | 401) =>
  new Problem(status, 'INVALID_CODE', 'The code is wrong or has expired. After five wrong codes, request another mail.')
