// engine: sqlite
import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import { moveClock, now } from '../../src/core/clock'
import { RateLimiter } from '../../src/core/rate-limiter'

const start = Date.UTC(2030, 0, 1)
const HOUR_MS = 3_600_000
beforeEach(() => moveClock(start))
afterEach(() => moveClock())
const countAllowed = (limiter: RateLimiter, key: string, times: number) =>
  Array.from({ length: times }, () => limiter.consume(key)).filter((wait) => wait === 0).length

test('RateLimiter allows the limit of requests per window, and again as many after it', () => {
  const limiter = new RateLimiter(3, HOUR_MS)
  expect(countAllowed(limiter, 'a', 10)).toBe(3)
  const wait = limiter.consume('a')
  expect(wait).toBeWithin(HOUR_MS - 10_000, HOUR_MS + 1)
  moveClock(now() + wait - 30_000)
  expect(limiter.consume('a')).toBeGreaterThan(0)
  moveClock(start + HOUR_MS + 10_000)
  expect(countAllowed(limiter, 'a', 10)).toBe(3)
})

test('refused attempts do not prolong the wait of their key', () => {
  const limiter = new RateLimiter(1, HOUR_MS)
  limiter.consume('a')
  moveClock(start + HOUR_MS / 2)
  for (let n = 0; n < 100; n++) limiter.consume('a')
  moveClock(start + HOUR_MS + 10_000)
  expect(limiter.consume('a')).toBe(0)
})

test('RateLimiter counts every key separately', () => {
  const limiter = new RateLimiter(1, HOUR_MS)
  expect([limiter.consume('a'), limiter.consume('b')]).toEqual([0, 0])
  expect(limiter.consume('a')).toBeGreaterThan(0)
})

test('RateLimiter forgets the least recently seen key of a tenant when it holds too many', () => {
  const limiter = new RateLimiter(1, HOUR_MS, 2)
  limiter.consume('acme a')
  limiter.consume('acme b')
  limiter.consume('acme a') // seen again
  limiter.consume('acme c')
  expect(limiter.consume('acme a')).toBeGreaterThan(0)
  expect(limiter.consume('acme b')).toBe(0)
})

test('a tenant with very many keys pushes out its own, and those of no other tenant', () => {
  const limiter = new RateLimiter(1, HOUR_MS, 100)
  const others = Array.from({ length: 10 }, (_, n) => `other${n % 2} ${n}`)
  for (const key of others) limiter.consume(key)
  for (let n = 0; n < 10_000; n++) limiter.consume(`acme ${n}`)
  for (const key of others) expect(limiter.consume(key)).toBeGreaterThan(0)
  expect(limiter.consume('acme 9999')).toBeGreaterThan(0)
})

test('a clock that is set back does not lock a key out', () => {
  const limiter = new RateLimiter(1, HOUR_MS)
  limiter.consume('a')
  moveClock(start - 10 * HOUR_MS)
  expect(limiter.consume('a')).toBe(0)
})

test('RateLimiter distinguishes long keys without storing their text', () => {
  const limiter = new RateLimiter(1, HOUR_MS)
  const keys = spyOn(Map.prototype, 'set')
  const long = 'x'.repeat(16_000)
  const waits = [`${long}a`, `${long}b`, `${long}a`].map((key) => limiter.consume(key))
  const lengths = keys.mock.calls.map(([key]) => `${key}`.length)
  keys.mockRestore()
  expect(waits.map((wait) => wait > 0)).toEqual([false, false, true])
  expect(Math.max(...lengths)).toBeLessThan(200)
})

test('getWaitMs returns the wait until the next allowed request without counting one', () => {
  const limiter = new RateLimiter(2, HOUR_MS)
  expect([limiter.getWaitMs('a'), limiter.getWaitMs('a'), limiter.getWaitMs('a')]).toEqual([0, 0, 0])
  limiter.consume('a', 2)
  expect(limiter.getWaitMs('a')).toBeWithin(HOUR_MS - 10_000, HOUR_MS + 1)
  expect(limiter.getWaitMs('b')).toBe(0)
  moveClock(start + HOUR_MS + 10_000)
  expect(limiter.getWaitMs('a')).toBe(0)
})
