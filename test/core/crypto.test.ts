import { expect, test } from 'bun:test'
import { generateToken, isTimingSafeEqual, sha256 } from '../../src/core/crypto'

test('secrets are long, fit into a URL, and never come twice', () => {
  const many = Array.from({ length: 1_000 }, generateToken)
  for (const one of many) expect(one).toMatch(/^[\w-]{43}$/)
  expect(new Set(many).size).toBe(1_000)
})

test('what is kept of a secret is its SHA-256', () => {
  expect(sha256('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  expect(sha256('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
})

test('texts are the same only when they are', () => {
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
