// engine: sqlite
import { afterEach, expect, test } from 'bun:test'
import { moveClock, now, parseIsoDateTime, toIsoString } from '../../src/core/clock'

afterEach(() => moveClock())

const DAY_MS = 86_400_000
const MAX_DATE_MS = 8_640_000_000_000_000

test('toIsoString returns what Date returns for random times of all ranges', () => {
  const within = (from: number, to: number) => Math.floor(from + Math.random() * (to - from))
  const ranges: [number, number][] = [
    [Date.UTC(2020), Date.UTC(2040)],
    [-DAY_MS, DAY_MS],
    [Date.UTC(1900), Date.UTC(1970)],
    [-MAX_DATE_MS, MAX_DATE_MS],
    [-62_167_219_200_000 - DAY_MS, -62_167_219_200_000 + DAY_MS], // the year 0
    [253_402_300_800_000 - DAY_MS, 253_402_300_800_000 + DAY_MS], // the year 10000
  ]
  for (const [from, to] of ranges)
    for (let n = 0; n < 5_000; n++) {
      const ms = within(from, to)
      expect(toIsoString(ms)).toBe(new Date(ms).toISOString())
    }
})

test('toIsoString returns what Date returns at the limits of seconds, days and the calendar', () => {
  const edges = [
    0,
    -1,
    1,
    999,
    1_000,
    59_999,
    60_000,
    3_599_999,
    3_600_000,
    DAY_MS - 1,
    DAY_MS,
    DAY_MS + 1,
    -DAY_MS,
    -DAY_MS - 1,
  ]
  for (const ms of [...edges, Date.UTC(2024, 1, 29), Date.UTC(2024, 1, 29) - 1, MAX_DATE_MS, -MAX_DATE_MS])
    expect(toIsoString(ms)).toBe(new Date(ms).toISOString())
})

test('toIsoString throws a RangeError for an invalid time and stays correct for the next', () => {
  for (const ms of [Number.NaN, MAX_DATE_MS + DAY_MS, Number.POSITIVE_INFINITY])
    expect(() => toIsoString(ms)).toThrow(RangeError)
  expect(toIsoString(0)).toBe('1970-01-01T00:00:00.000Z')
})

test('a moved clock continues from its new time', () => {
  const then = Date.UTC(2030, 0, 1)
  moveClock(then)
  expect(now()).toBeWithin(then, then + 5_000)
  moveClock()
  expect(Math.abs(now() - Date.now())).toBeLessThan(5_000)
})

test('parseIsoDateTime reads days and times without a zone as UTC, and refuses everything else', () => {
  expect(parseIsoDateTime('2026-01-31')).toBe(Date.UTC(2026, 0, 31))
  expect(parseIsoDateTime('2026-01-31T10:00')).toBe(Date.UTC(2026, 0, 31, 10))
  expect(parseIsoDateTime('2026-01-31T10:00:00-03:30')).toBe(Date.UTC(2026, 0, 31, 13, 30))
  for (const text of ['2026-06-30T23:59:60Z', '2026-02-30T10:00', '2026-01-31T24:00', '31 Jan 2026', '0', ''])
    expect(parseIsoDateTime(text)).toBeUndefined()
})
