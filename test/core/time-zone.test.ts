// engine: sqlite
import { afterEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/clock'
import { describeTimeZones, findTimeZone, listTimeZones, TimeZone } from '../../src/core/time-zone'
import { chooseNewerZones, useZoneFolder } from '../../src/core/zone-data/current-zones'
import { readPackedZones } from '../../src/core/zone-data/packed-zones'
import { readZoneFolder } from '../../src/core/zone-data/zone-folder'
import { createTempFolder, runAtoll, SOURCE_COMMAND } from '../fakes/cli'
import { compileZones, zoneCompiler } from '../fakes/time-zones'

const SYSTEM_FOLDER = '/usr/share/zoneinfo'
const hasSystemZones = existsSync(join(SYSTEM_FOLDER, 'Europe/Berlin'))

afterEach(() => useZoneFolder(''))

const zone = (name: string) => findTimeZone(name)!
const utc = (text: string) => Date.parse(`${text}Z`)
const local = (text: string) => Date.parse(`${text}Z`)

describe('the rules of zones', () => {
  test.each([
    ['America/Vancouver', '-07:00', '-07:00'],
    ['America/Edmonton', '-06:00', '-06:00'],
    ['America/Winnipeg', '-05:00', '-05:00'],
    ['Africa/Casablanca', '+00:00', '+00:00'],
    ['America/Havana', '-04:00', '-05:00'],
    ['Europe/Berlin', '+01:00', '+01:00'],
    ['Asia/Kathmandu', '+05:45', '+05:45'],
  ])('%s is at %s in the winter of 2026, and at %s a year later', (name, first, second) => {
    const offsetAt = (moment: string) => zone(name).format(utc(moment)).slice(-6)
    expect([offsetAt('2026-12-20T12:00'), offsetAt('2027-12-20T12:00')]).toEqual([first, second])
  })

  test('the rules agree with those of the runtime on the years before it was built', () => {
    for (const name of ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Pacific/Apia', 'Asia/Gaza']) {
      const format = new Intl.DateTimeFormat('sv', { timeZone: name, dateStyle: 'short', timeStyle: 'medium' })
      for (let moment = utc('1975-01-01T00:30'); moment < utc('2025-01-01T00:00'); moment += 5.3 * DAY_MS) {
        const shown = new Date(zone(name).toLocal(moment)).toISOString().slice(0, 19).replace('T', ' ')
        expect([name, moment, shown]).toEqual([name, moment, format.format(moment)])
      }
    }
  })

  test.skipIf(!hasSystemZones)(
    'rules of compiled files and of the package are equal, also far beyond the years of the package',
    () => {
      const [packed, files] = [readPackedZones(), readZoneFolder(SYSTEM_FOLDER, 'any')]
      for (const name of ['Europe/Berlin', 'America/New_York', 'Africa/Cairo', 'America/Santiago', 'Asia/Jerusalem']) {
        const [one, other] = [packed, files].map((data) => new TimeZone(name, data.readRules(name)!)) as [
          TimeZone,
          TimeZone,
        ]
        const years = [
          utc('1880-01-01T00:00'),
          utc('2024-01-01T00:00'),
          utc('2090-01-01T00:00'),
          utc('2599-01-01T00:00'),
        ]
        for (const from of years)
          for (let moment = from; moment < from + 3 * 365 * DAY_MS; moment += 11 * HOUR_MS)
            if (one.offsetAt(moment) !== other.offsetAt(moment)) throw new Error(`${name} at ${new Date(moment)}`)
      }
    },
  )

  test('names are known in any case, and old ones too', () => {
    expect(zone('europe/BERLIN').name).toBe('Europe/Berlin')
    expect(zone('US/Pacific').offsetAt(utc('2026-01-15T00:00'))).toBe(-8 * HOUR_MS)
    expect(['Mars/Phobos', '', '..', '../etc/passwd', 'posixrules', '+02:00', '__proto__'].map(findTimeZone)).toEqual(
      Array(7).fill(undefined),
    )
    expect(listTimeZones().length).toBeGreaterThan(500)
  })
})

describe('local times', () => {
  test.each([
    ['Europe/Berlin', '2027-03-28T02:30', [], '2027-03-28T01:30', 'that 60 minutes are skipped of lies behind the gap'],
    [
      'Australia/Lord_Howe',
      '2027-10-03T02:15',
      [],
      '2027-10-02T15:45',
      'that 30 minutes are skipped of lies behind it',
    ],
    ['Pacific/Apia', '2011-12-30T10:00', [], '2011-12-30T20:00', 'of a day that is skipped lies on the next day'],
    ['Europe/Berlin', '2027-10-31T02:30', ['2027-10-31T00:30', '2027-10-31T01:30'], '2027-10-31T00:30', 'occurs twice'],
    [
      'Australia/Lord_Howe',
      '2027-04-04T01:45',
      ['2027-04-03T14:45', '2027-04-03T15:15'],
      '2027-04-03T14:45',
      'occurs twice',
    ],
    ['Asia/Kolkata', '2027-01-01T00:00', ['2026-12-31T18:30'], '2026-12-31T18:30', 'occurs once'],
  ])('%s: %s', (name, text, moments, first) => {
    expect(zone(name).momentsOf(local(text))).toEqual(moments.map(utc))
    expect(zone(name).toMoment(local(text))).toBe(utc(first))
  })

  test('days begin with the first moment of their date, also where midnight is skipped or occurs twice', () => {
    const startOf = (name: string, moment: string, interval: 'hour' | 'day' | 'week' | 'quarter' = 'day') =>
      zone(name).format(zone(name).startOf(interval, utc(moment)))
    expect(startOf('America/Asuncion', '2023-10-01T12:00')).toBe('2023-10-01T01:00:00-03:00')
    expect(startOf('America/Havana', '2027-11-07T12:00')).toBe('2027-11-07T00:00:00-04:00')
    expect(startOf('Europe/Berlin', '2027-03-28T12:00', 'week')).toBe('2027-03-22T00:00:00+01:00')
    expect(startOf('Europe/Berlin', '2027-03-31T22:30', 'quarter')).toBe('2027-04-01T00:00:00+02:00')
    expect(startOf('Europe/Berlin', '2027-10-31T00:30', 'hour')).toBe('2027-10-31T02:00:00+02:00')
    expect(startOf('Europe/Berlin', '2027-10-31T01:30', 'hour')).toBe('2027-10-31T02:00:00+01:00')
    expect(startOf('Australia/Lord_Howe', '2027-04-03T15:20', 'hour')).toBe('2027-04-04T01:30:00+11:00')
  })

  test('each moment is one of those of the local time that it shows', () => {
    for (const name of ['Europe/Berlin', 'Australia/Lord_Howe', 'America/St_Johns', 'Africa/Cairo', 'Pacific/Chatham'])
      for (let moment = utc('2026-12-01T00:00'); moment < utc('2028-12-01T00:00'); moment += 29 * MINUTE_MS)
        if (!zone(name).momentsOf(zone(name).toLocal(moment)).includes(moment)) throw new Error(`${name} ${moment}`)
  })
})

describe('the folder of ATOLL_TIME_ZONES', () => {
  test.skipIf(!zoneCompiler)(
    'a folder replaces the rules, may have new zones, and is named with its release',
    async () => {
      const folder = compileZones('Z Europe/Berlin 3 - +03', 'Z Europe/Atlantis -1:30 - -0130')
      const [at, env] = [createTempFolder(), { ATOLL_TIME_ZONES: folder }]
      const { json } = await runAtoll('version --json', { at, env, program: SOURCE_COMMAND })
      expect(json.timeZones).toEqual({ version: '2999z', source: folder })
      const { json: report } = await runAtoll('doctor --json', { at, env, program: SOURCE_COMMAND })
      expect(report.timeZones).toEqual(json.timeZones)
      useZoneFolder(folder)
      expect(zone('Europe/Berlin').format(utc('2027-01-01T00:00'))).toBe('2027-01-01T03:00:00+03:00')
      expect(zone('europe/atlantis').format(utc('2027-01-01T00:00'))).toBe('2026-12-31T22:30:00-01:30')
      expect(zone('America/Havana').offsetAt(utc('2026-12-20T12:00'))).toBe(-4 * HOUR_MS)
    },
  )

  test('a folder without time zones is refused at the start', async () => {
    const at = createTempFolder()
    mkdirSync(join(at, 'empty'))
    writeFileSync(join(at, 'empty', 'Zone'), 'no rules')
    for (const [folder, reason] of [
      ['empty', 'has no compiled time zones'],
      ['missing', 'cannot be read'],
    ] as const) {
      const env = { ATOLL_TIME_ZONES: join(at, folder) }
      const { code, err } = await runAtoll('version --json', { at, env, program: SOURCE_COMMAND })
      expect([code, err]).toEqual([2, expect.stringContaining(reason)])
    }
  })

  test('without a folder, the newest rules at hand are used', () => {
    expect(describeTimeZones().version >= '2026f').toBe(true)
  })

  test.skipIf(!zoneCompiler)(
    "the system's rules are used if they are newer than the built-in ones, and not otherwise",
    () => {
      const folder = compileZones('Z Europe/Berlin 3 - +03')
      expect(chooseNewerZones(folder)).toMatchObject({ version: '2999z', origin: folder })
      writeFileSync(join(folder, 'tzdata.zi'), '# version 2020a\n')
      const builtIn = chooseNewerZones(folder)
      expect(builtIn.version >= '2026f' && builtIn.origin !== folder).toBeTrue()
      expect(chooseNewerZones(createTempFolder()).version).toBe(builtIn.version)
    },
  )
})
