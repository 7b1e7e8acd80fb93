// engine: sqlite
import { expect, test } from 'bun:test'
import { formatBytes, parseSize, toSizeText } from '../../src/core/byte-size'

test('parseSize reads bytes and multiples of 1,024, and nothing else', () => {
  const sizes = {
    '0': 0,
    '1500': 1_500,
    '1K': 1_024,
    '200M': 200 << 20,
    '2g': 2 ** 31,
    '3T': 3 * 2 ** 40,
    '-1K': -1_024,
  }
  for (const [text, bytes] of Object.entries(sizes)) expect([text, parseSize(text)]).toEqual([text, bytes])
  for (const text of ['', ' ', 'K', '1.5M', '1 M', '1MB', '1KiB', '1e3', '1'.repeat(16), 'M1'])
    expect([text, parseSize(text)]).toEqual([text, undefined])
})

test('toSizeText writes what parseSize reads, in the largest unit that is exact', () => {
  const texts = { 0: '0', 1500: '1500', 1024: '1K', [1_536 << 10]: '1536K', [2 ** 31]: '2G', [5 * 2 ** 50]: '5120T' }
  for (const [bytes, text] of Object.entries(texts)) {
    expect(toSizeText(Number(bytes))).toBe(text)
    expect(parseSize(text)).toBe(Number(bytes))
  }
})

test('formatBytes writes sizes in the largest unit of which there is at least one', () => {
  const texts = {
    ...{ 0: '0 bytes', 1023: '1,023 bytes', 1024: '1 KiB', [1_536 << 10]: '1.5 MiB', [2 ** 30 - 1]: '1,024 MiB' },
    ...{ [2 ** 30]: '1 GiB', [2 ** 40]: '1 TiB', [2 ** 52]: '4,096 TiB' },
  }
  for (const [bytes, text] of Object.entries(texts)) expect(formatBytes(Number(bytes), 'en')).toBe(text)
  expect(formatBytes(1_536, 'de')).toBe('1,5 KiB')
})
