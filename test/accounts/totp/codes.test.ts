import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  codeAt,
  decodeBase32,
  encodeBase32,
  findMatchingStep,
  newSecret,
  stepAt,
  toOtpauthUri,
} from '../../../src/accounts/totp/codes'
import { checkProperty } from '../../property-runner'

const key = Buffer.from('12345678901234567890')

// RFC 6238, appendix B.
test.each([
  [59, '94287082'],
  [1111111109, '07081804'],
  [1111111111, '14050471'],
  [1234567890, '89005924'],
  [2000000000, '69279037'],
  [20000000000, '65353130'],
])('codeAt at second %d returns the code %s, as RFC 6238 lists it', (second, code) => {
  expect(codeAt(key, stepAt(second * 1000), 8)).toBe(code)
})

// RFC 4226, appendix D.
test('codeAt returns the ten HOTP values of RFC 4226 for the first ten steps', () => {
  const codes = '755224 287082 359152 969429 338314 254676 287922 162583 399871 520489'.split(' ')
  expect(codes.map((_, n) => codeAt(key, n))).toEqual(codes)
})

// RFC 4648, §10.
test.each([
  ['', ''],
  ['f', 'MY'],
  ['fo', 'MZXQ'],
  ['foo', 'MZXW6'],
  ['foob', 'MZXW6YQ'],
  ['fooba', 'MZXW6YTB'],
  ['foobar', 'MZXW6YTBOI'],
])('encodeBase32 encodes "%s" as "%s"', (text, encoded) => {
  expect(encodeBase32(Buffer.from(text))).toBe(encoded)
})

test('decodeBase32 returns the bytes that encodeBase32 has encoded', () => {
  checkProperty(
    200,
    fc.property(fc.uint8Array(), (bytes) => expect(decodeBase32(encodeBase32(bytes))).toEqual(bytes)),
  )
})

test('findMatchingStep accepts a code of the current step and of one step before or after it, and no others', () => {
  const secret = newSecret()
  const time = 1_000_000 * 30_000
  const code = (steps: number) => codeAt(decodeBase32(secret), 1_000_000 + steps)
  expect([-2, -1, 0, 1, 2].map((steps) => findMatchingStep(secret, code(steps), time))).toEqual([
    undefined,
    999_999,
    1_000_000,
    1_000_001,
    undefined,
  ])
  expect(findMatchingStep(secret, '', time)).toBeUndefined()
})

test('toOtpauthUri returns a URI with secret, issuer, account name, algorithm, digits and period', () => {
  expect(toOtpauthUri('MZXW6YTBOI', 'acme', 'Ada & Co')).toBe(
    'otpauth://totp/acme:Ada%20%26%20Co?secret=MZXW6YTBOI&issuer=acme&algorithm=SHA1&digits=6&period=30',
  )
})
