import { afterEach, expect, test } from 'bun:test'
import { iso, moveClock, now } from '../../src/core/clock'

afterEach(() => moveClock(Date.now()))

const DAY = 86_400_000
const MOST = 8_640_000_000_000_000

test('any time is told as Date tells it', () => {
  const within = (from: number, to: number) => Math.floor(from + Math.random() * (to - from))
  const ranges: [number, number][] = [
    [Date.UTC(2020), Date.UTC(2040)],
    [-DAY, DAY],
    [Date.UTC(1900), Date.UTC(1970)],
    [-MOST, MOST],
    [-62_167_219_200_000 - DAY, -62_167_219_200_000 + DAY], // the year 0
    [253_402_300_800_000 - DAY, 253_402_300_800_000 + DAY], // the year 10000
  ]
  for (const [from, to] of ranges)
    for (let n = 0; n < 5_000; n++) {
      const ms = within(from, to)
      expect(iso(ms)).toBe(new Date(ms).toISOString())
    }
})

test('the edges of days, seconds and the calendar are told as Date tells them', () => {
  const edges = [0, -1, 1, 999, 1_000, 59_999, 60_000, 3_599_999, 3_600_000, DAY - 1, DAY, DAY + 1, -DAY, -DAY - 1]
  for (const ms of [...edges, Date.UTC(2024, 1, 29), Date.UTC(2024, 1, 29) - 1, MOST, -MOST])
    expect(iso(ms)).toBe(new Date(ms).toISOString())
})

test('what is no time is refused, and the next is told right', () => {
  for (const ms of [Number.NaN, MOST + DAY, Number.POSITIVE_INFINITY]) expect(() => iso(ms)).toThrow(RangeError)
  expect(iso(0)).toBe('1970-01-01T00:00:00.000Z')
})

test('a clock that was moved goes on from there', () => {
  const then = Date.UTC(2030, 0, 1)
  moveClock(then)
  expect(now()).toBeWithin(then, then + 5_000)
  moveClock(Date.now())
  expect(Math.abs(now() - Date.now())).toBeLessThan(5_000)
})
