import { expect, test } from 'bun:test'
import { TokenBuckets } from '../../src/limits/token-bucket'

const MINUTE = 60_000

test('a bucket gives out the requests of a minute at once, and then one for each part of the minute', () => {
  const buckets = new TokenBuckets()
  for (const remaining of [2, 1, 0])
    expect(buckets.take('ada', 3, 0)).toMatchObject({ remaining, waitMs: 0, resetMs: (3 - remaining) * 20_000 })
  expect(buckets.take('ada', 3, 5_000)).toMatchObject({ remaining: 0, waitMs: 15_000 })
  expect(buckets.take('ada', 3, 20_000)).toMatchObject({ remaining: 0, waitMs: 0 })
  expect(buckets.take('ada', 3, 20_000).waitMs).toBe(20_000)
})

test('a refused request takes nothing, so that who keeps asking does not wait longer', () => {
  const buckets = new TokenBuckets()
  buckets.take('ada', 1, 0)
  for (let time = 0; time < MINUTE; time += 1_000) expect(buckets.take('ada', 1, time).waitMs).toBe(MINUTE - time)
  expect(buckets.take('ada', 1, MINUTE).waitMs).toBe(0)
})

test('a bucket never holds more than the requests of a minute, also after a limit was lowered', () => {
  const buckets = new TokenBuckets()
  buckets.take('ada', 100, 0)
  expect(buckets.take('ada', 2, 0)).toMatchObject({ remaining: 0, waitMs: 0 })
  expect(buckets.take('ada', 2, 100 * MINUTE).remaining).toBe(1)
})

test('a clock that is set back fills a bucket instead of blocking it', () => {
  const buckets = new TokenBuckets()
  for (const ahead of [100 * MINUTE, MINUTE, MINUTE / 2]) {
    buckets.take('ada', 2, ahead)
    expect(buckets.take('ada', 2, 5)).toMatchObject({ remaining: 1, waitMs: 0 })
  }
})

test('buckets of others are not touched, and full buckets are forgotten', () => {
  const buckets = new TokenBuckets()
  buckets.take('ada', 1, 0)
  expect(buckets.take('bob', 1, 30_000).waitMs).toBe(0)
  expect(buckets.removeFull(MINUTE)).toBe(1)
  expect(buckets.removeFull(2 * MINUTE)).toBe(0)
})

test.each([7, 600, 9_999])('a bucket of %d requests gives out exactly as many at once', (perMinute) => {
  const buckets = new TokenBuckets()
  const time = Date.UTC(2026, 10, 23)
  for (let n = 1; n <= perMinute; n++) expect(buckets.take('ada', perMinute, time).remaining).toBe(perMinute - n)
  expect(buckets.take('ada', perMinute, time).waitMs).toBeGreaterThan(0)
})
