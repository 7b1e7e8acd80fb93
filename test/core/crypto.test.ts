// engine: sqlite
import { expect, test } from 'bun:test'
import { createHmac, hkdfSync } from 'node:crypto'
import { deriveKeyBytes, generateToken, hmac, isTimingSafeEqual, sha256 } from '../../src/core/crypto'

test('generateToken returns distinct tokens of 43 URL-safe characters', () => {
  const tokens = Array.from({ length: 1_000 }, generateToken)
  for (const token of tokens) expect(token).toMatch(/^[\w-]{43}$/)
  expect(new Set(tokens).size).toBe(1_000)
})

test('sha256 returns the hexadecimal SHA-256 of a text', () => {
  expect(sha256('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  expect(sha256('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
})

test('hmac and deriveKeyBytes compute what RFC 2104 and RFC 5869 say, as node:crypto does', () => {
  for (const key of ['', 'key', 'k'.repeat(100)])
    for (const text of ['', 'text', 'ü'.repeat(500)]) {
      for (const hash of ['sha1', 'sha256'] as const)
        expect(hmac(hash, key, text)).toEqual(createHmac(hash, key).update(text).digest())
      const expected = new Uint8Array(hkdfSync('sha256', key, 'acme', text, 32))
      expect(deriveKeyBytes(key, 'acme', text)).toEqual(expected)
    }
})

test('isTimingSafeEqual returns true only for identical texts', () => {
  for (const text of ['', 'a', 'zwölf', generateToken()]) expect(isTimingSafeEqual(text, text)).toBeTrue()
  for (const [one, other] of [
    ['a', 'b'],
    ['a', ''],
    ['a', 'aa'],
    ['a', 'A'],
    ['ä', 'a\u0308'],
  ])
    expect(isTimingSafeEqual(one!, other!)).toBeFalse()
})
