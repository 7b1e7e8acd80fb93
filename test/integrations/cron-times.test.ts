// engine: sqlite
import { describe, expect, test } from 'bun:test'
import { DAY_MS, MINUTE_MS } from '../../src/core/clock'
import { findTimeZone } from '../../src/core/time-zone'
import { findNextDue } from '../../src/integrations/triggers/schedule'

const ZONES = [
  ...['Europe/Berlin', 'Europe/London', 'Europe/Dublin', 'America/New_York', 'America/Havana', 'America/St_Johns'],
  ...['America/Santiago', 'Africa/Cairo', 'Asia/Beirut', 'Australia/Lord_Howe', 'Pacific/Chatham', 'Antarctica/Troll'],
]

/** Returns when a schedule is due on a local day, as the clocks of the zone show it. */
function listDue(cron: string, timezone: string, day: string): string[] {
  const zone = findTimeZone(timezone)!
  const [start, end] = [Date.parse(day), Date.parse(day) + DAY_MS].map((local) => zone.toMoment(local)) as [
    number,
    number,
  ]
  const found: string[] = []
  for (let due = findNextDue({ cron, timezone }, start - 1)!; due < end; due = findNextDue({ cron, timezone }, due)!)
    found.push(
      zone
        .format(due)
        .slice(11)
        .replace(/:00(?=[+-])/, ''),
    )
  return found
}

describe('schedules on days on which clocks change', () => {
  // Clocks of Berlin skip 02:00 to 03:00 on 28 March, and show it twice on 31 October. Those of Lord Howe skip 02:00 to
  // 02:30 on 3 October, and show 01:30 to 02:00 twice on 4 April.
  test.each([
    ['30 2 * * *', 'Europe/Berlin', '2027-03-28', '03:30+02:00'],
    ['0,30 2 * * *', 'Europe/Berlin', '2027-03-28', '03:00+02:00 03:30+02:00'],
    ['*/20 2 * * *', 'Europe/Berlin', '2027-03-28', '03:00+02:00 03:20+02:00 03:40+02:00'],
    ['0,30 2 * * SUN', 'Europe/Berlin', '2027-03-28', '03:00+02:00 03:30+02:00'],
    ['0,30 2,3 * * *', 'Europe/Berlin', '2027-03-28', '03:00+02:00 03:30+02:00'],
    ['0 1-4 * * *', 'Europe/Berlin', '2027-03-28', '01:00+01:00 03:00+02:00 04:00+02:00'],
    ['30 2 * * *', 'Europe/Berlin', '2027-10-31', '02:30+02:00'],
    ['0,30 2 * * *', 'Europe/Berlin', '2027-10-31', '02:00+02:00 02:30+02:00'],
    ['*/20 2 * * *', 'Europe/Berlin', '2027-10-31', '02:00+02:00 02:20+02:00 02:40+02:00'],
    ['0 2-3 * * *', 'Europe/Berlin', '2027-10-31', '02:00+02:00 03:00+01:00'],
    ['15 2 * * *', 'Australia/Lord_Howe', '2027-10-03', '02:45+11:00'],
    ['0,15,30,45 2 * * *', 'Australia/Lord_Howe', '2027-10-03', '02:30+11:00 02:45+11:00'],
    ['15,45 1 * * *', 'Australia/Lord_Howe', '2027-04-04', '01:15+11:00 01:45+11:00'],
    ['45 1,2 * * *', 'Australia/Lord_Howe', '2027-04-04', '01:45+11:00 02:45+10:30'],
  ])('"%s" in %s is due on %s at %s', (cron, zone, day, expected) => {
    const shown = listDue(cron, zone, day)
    expect(shown.join(' ')).toBe(expected)
  })

  test('a schedule for every second hour is due once at an hour that occurs twice, one for every hour twice', () => {
    expect(listDue('0 */2 * * *', 'Europe/Berlin', '2027-10-31').length).toBe(12)
    expect(listDue('0 * * * *', 'Europe/Berlin', '2027-10-31').length).toBe(25)
    expect(listDue('0 0-23 * * SUN', 'Europe/Berlin', '2027-10-31').length).toBe(25)
    expect(listDue('*/15 * * * *', 'Australia/Lord_Howe', '2027-04-04').length).toBe(98)
  })
})

/** Expressions, and what they mean: whether they are due at a minute of a local day. */
const EXPRESSIONS: [string, (hour: number, minute: number, weekday: number) => boolean][] = [
  ['30 2 * * *', (hour, minute) => hour === 2 && minute === 30],
  ['0 0 * * *', (hour, minute) => hour === 0 && minute === 0],
  ['*/10 0-3 * * *', (hour, minute) => hour <= 3 && minute % 10 === 0],
  ['5,35 */2 * * *', (hour, minute) => hour % 2 === 0 && minute % 30 === 5],
  ['15 * * * *', (_, minute) => minute === 15],
  ['*/20 * * * SUN', (_, minute, weekday) => weekday === 0 && minute % 20 === 0],
  ['45 23 * * SAT', (hour, minute, weekday) => weekday === 6 && hour === 23 && minute === 45],
]

/** Returns all days of 2026 to 2028 around a change of the clocks, in ms of local time. */
function listDaysOfChange(timezone: string): number[] {
  const zone = findTimeZone(timezone)!
  const days = new Set<number>()
  for (let moment = Date.UTC(2026, 0); moment < Date.UTC(2029, 0); moment = zone.spanAt(moment).end)
    if (moment > Date.UTC(2026, 0))
      for (const local of [zone.toLocal(moment - 1), zone.toLocal(moment)])
        days.add(Math.floor(local / DAY_MS) * DAY_MS)
  return [...days]
}

describe.each(ZONES)('schedules in %s', (timezone) => {
  const zone = findTimeZone(timezone)!

  test.each(EXPRESSIONS)('"%s" keeps its promise on all days of change from 2026 to 2028', (cron, isDue) => {
    const isHourly = cron.split(' ')[1] === '*'
    const days = listDaysOfChange(timezone)
    expect(days.length).toBeGreaterThanOrEqual(5)
    for (const day of days) {
      const expected = new Set<number>()
      for (let local = day - DAY_MS; local < day + 2 * DAY_MS; local += MINUTE_MS) {
        const date = new Date(local)
        if (!isDue(date.getUTCHours(), date.getUTCMinutes(), date.getUTCDay())) continue
        const moments = zone.momentsOf(local)
        // A skipped time lies as far behind the change as it was in the gap.
        if (!moments.length) expected.add(zone.toMoment(local))
        else for (const moment of isHourly ? moments : moments.slice(0, 1)) expected.add(moment)
      }
      const [from, until] = [zone.toMoment(day) - 2 * 60 * MINUTE_MS, zone.toMoment(day) + DAY_MS]
      const found: number[] = []
      for (
        let due = findNextDue({ cron, timezone }, from - 1)!;
        due < until;
        due = findNextDue({ cron, timezone }, due)!
      )
        found.push(due)
      const wanted = [...expected].filter((due) => due >= from && due < until).sort((one, other) => one - other)
      expect([timezone, cron, found.map(zone.format, zone)]).toEqual([timezone, cron, wanted.map(zone.format, zone)])
    }
  })
})
