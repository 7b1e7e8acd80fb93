// engine: sqlite
import { expect, test } from 'bun:test'
import { parseRetryAfter } from '../../src/core/retry-after'

const NOW = Date.UTC(1994, 10, 6, 8, 49, 0)

test.each([
  ['0', 0],
  ['120', 120_000],
  [' 7 ', 7_000],
  ['Sun, 06 Nov 1994 08:49:37 GMT', 37_000],
  ['Sunday, 06-Nov-94 08:49:37 GMT', 37_000],
  ['Sun Nov  6 08:49:37 1994', 37_000],
  ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
])('parseRetryAfter reads %p as %p ms', (header, ms) => {
  expect(parseRetryAfter(header, NOW)).toBe(ms)
})

test.each(['', ' ', '-5', '1.5', '1e3', 'soon', '2026-01-01', 'Mon, 32 Foo 2026 08:49:37 GMT', null, undefined])(
  'parseRetryAfter ignores %p',
  (header) => {
    expect(parseRetryAfter(header, NOW)).toBeUndefined()
  },
)
