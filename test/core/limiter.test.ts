import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import { moveClock, now } from '../../src/core/clock'
import { Limiter } from '../../src/core/limiter'

const start = Date.UTC(2030, 0, 1)
const HOUR = 3_600_000
beforeEach(() => moveClock(start))
afterEach(() => moveClock(Date.now()))
const taken = (limiter: Limiter, key: string, times: number) =>
  Array.from({ length: times }, () => limiter.take(key)).filter((wait) => wait === 0).length

test('as many as are allowed, and no more, until the first is over', () => {
  const limiter = new Limiter(3, HOUR)
  expect(taken(limiter, 'a', 10)).toBe(3)
  const wait = limiter.take('a')
  expect(wait).toBeWithin(HOUR - 10_000, HOUR + 1)
  moveClock(now() + wait - 30_000)
  expect(limiter.take('a')).toBeGreaterThan(0)
  moveClock(start + HOUR + 10_000)
  expect(taken(limiter, 'a', 10)).toBe(3)
})

test('those who keep trying wait no longer than those who rest', () => {
  const limiter = new Limiter(1, HOUR)
  limiter.take('a')
  moveClock(start + HOUR / 2)
  for (let n = 0; n < 100; n++) limiter.take('a')
  moveClock(start + HOUR + 10_000)
  expect(limiter.take('a')).toBe(0)
})

test('one does not wait for another', () => {
  const limiter = new Limiter(1, HOUR)
  expect([limiter.take('a'), limiter.take('b')]).toEqual([0, 0])
  expect(limiter.take('a')).toBeGreaterThan(0)
})

test('of too many the one who was not seen for longest is forgotten', () => {
  const limiter = new Limiter(1, HOUR, 2)
  limiter.take('a')
  limiter.take('b')
  limiter.take('a') // seen again
  limiter.take('c')
  expect(limiter.take('a')).toBeGreaterThan(0)
  expect(limiter.take('b')).toBe(0)
})

test('a clock that is set back shuts nobody out', () => {
  const limiter = new Limiter(1, HOUR)
  limiter.take('a')
  moveClock(start - 10 * HOUR)
  expect(limiter.take('a')).toBe(0)
})

test('keeps long keys apart without keeping their text', () => {
  const limiter = new Limiter(1, HOUR)
  const keys = spyOn(Map.prototype, 'set')
  const long = 'x'.repeat(16_000)
  const waits = [`${long}a`, `${long}b`, `${long}a`].map((key) => limiter.take(key))
  const lengths = keys.mock.calls.map(([key]) => `${key}`.length)
  keys.mockRestore()
  expect(waits.map((wait) => wait > 0)).toEqual([false, false, true])
  expect(lengths).toHaveLength(3)
  expect(Math.max(...lengths)).toBeLessThan(200)
})

test('says how long until one more is allowed, without counting it', () => {
  const limiter = new Limiter(2, HOUR)
  expect([limiter.waitFor('a'), limiter.waitFor('a'), limiter.waitFor('a')]).toEqual([0, 0, 0])
  limiter.take('a', 2)
  expect(limiter.waitFor('a')).toBeWithin(HOUR - 10_000, HOUR + 1)
  expect(limiter.waitFor('b')).toBe(0)
  moveClock(start + HOUR + 10_000)
  expect(limiter.waitFor('a')).toBe(0)
})
