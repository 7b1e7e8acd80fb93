import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import pg from 'pg'
import { config } from '../../../src/config'
import { DAY_MS, MINUTE_MS, moveClock, toIsoString } from '../../../src/core/clock'
import { findTimeZone, INTERVALS } from '../../../src/core/time-zone'
import { seededRandom } from '../../blueprints/seeded-random'
import { findPostgresBin, type PostgresServer, startPostgres } from '../../fakes/postgres'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture, importThings } from '../fixtures'

const fixture = await createThingsFixture([
  { key: 'name', type: 'string' },
  { key: 'moment', type: 'datetime' },
  { key: 'day', type: 'date' },
  { key: 'worth', type: 'integer' },
])
const { as, tenant } = fixture
const admin = as('admin')

const getGroups = async (query: string) => {
  const { status, body } = await as('user').get(`/blueprints/things/charts/bar?${query}`)
  expect([status, body.message]).toEqual([200, undefined])
  return (body.xAxis.data as string[]).map((name, at) => [name, body.series[0].data[at] as number] as const)
}
const setTenantZone = (timezone: string | null) => admin.put('/configurations/app-configuration', { timezone })

afterEach(async () => {
  moveClock()
  await setTenantZone(null)
})

describe('groups of moments in a time zone', () => {
  beforeAll(() =>
    importThings(
      fixture,
      ['2029-03-24T23:30:00Z', '2029-03-25T00:30:00Z', '2029-03-25T01:30:00Z', '2029-03-31T22:00:00Z'].map(
        (moment) => ({ ...{ name: 'dst', moment, day: moment.slice(0, 10), worth: 1 } }),
      ),
    ),
  )
  const inBerlin = 'name=dst&timezone=Europe/Berlin'

  test('days, weeks, months, quarters and years are those of the zone', async () => {
    const groups = (interval: string) => getGroups(`x=moment&interval=${interval}&${inBerlin}`)
    expect((await groups('day')).filter(([, count]) => count)).toEqual([
      ['2029-03-25', 3],
      ['2029-04-01', 1],
    ])
    expect(await groups('week')).toEqual([
      ['2029-03-19', 3],
      ['2029-03-26', 1],
    ])
    expect(await groups('month')).toEqual([
      ['2029-03-01', 3],
      ['2029-04-01', 1],
    ])
    expect(await groups('quarter')).toEqual([
      ['2029-Q1', 3],
      ['2029-Q2', 1],
    ])
    expect(await groups('year')).toEqual([['2029-01-01', 4]])
    expect(await getGroups('x=moment&interval=quarter&name=dst')).toEqual([['2029-Q1', 4]])
    expect(await getGroups(`x=moment&${inBerlin}`)).toEqual([[0, 4]] as never)
    expect(await getGroups('x=moment&name=dst')).toEqual([
      [0, 2],
      [6, 2],
    ] as never)
  })

  test('an hour carries its offset, a skipped one is no gap, and without a zone hours are those of UTC', async () => {
    const until = 'moment[$lt]=2029-03-26'
    expect(await getGroups(`x=moment&interval=hour&${inBerlin}&${until}`)).toEqual([
      ['2029-03-25T00:00:00+01:00', 1],
      ['2029-03-25T01:00:00+01:00', 1],
      ['2029-03-25T03:00:00+02:00', 1],
    ])
    expect((await getGroups(`x=moment&interval=hour&name=dst&${until}`))[0]).toEqual(['2029-03-24T23:00:00+00:00', 1])
  })

  test('dates do not move with a zone, and have no hours', async () => {
    expect((await getGroups('x=day&interval=day&name=dst&timezone=Pacific/Auckland'))[0]).toEqual(['2029-03-24', 1])
    const answer = await as('user').get('/blueprints/things/charts/bar?x=day&interval=hour')
    expect([statusAndCode(answer), answer.body.details[0].path]).toEqual([[400, 'INVALID_INPUT'], 'interval'])
  })

  test('bare days in filters begin in the zone', async () => {
    const count = async (query: string) => (await as('user').get(`/blueprints/things/charts/count?${query}`)).body.count
    const onSunday = 'name=dst&moment[$gte]=2029-03-25&moment[$lt]=2029-03-26'
    expect(await count(onSunday)).toBe(2)
    expect(await count(`${onSunday}&timezone=Europe/Berlin`)).toBe(3)
    expect(await count(`${onSunday}&$timezone=America/Los_Angeles`)).toBe(0)
    const { body } = await as('user').get(`/blueprints/things/charts/sum?sum=worth&${onSunday}&timezone=Europe/Berlin`)
    expect(body.sum).toBe(3)
  })

  test('bare days in filters of lists and exports begin in $timezone, and an unknown zone is 400 INVALID_INPUT', async () => {
    const onSunday = 'name=dst&moment[$gte]=2029-03-25&moment[$lt]=2029-03-26'
    const list = (query: string) => as('user').get(`/blueprints/things/entities?${query}`)
    expect((await list(onSunday)).body).toHaveLength(2)
    expect((await list(`${onSunday}&$timezone=Europe/Berlin`)).body).toHaveLength(3)
    const exported = await as('user').get(
      `/blueprints/things/entities/export?format=csv&${onSunday}&$timezone=Europe/Berlin`,
    )
    expect(exported.body.trim().split('\n')).toHaveLength(4)
    const refused = await list('$timezone=Mars/Phobos')
    expect([statusAndCode(refused), refused.body.details[0].path]).toEqual([[400, 'INVALID_INPUT'], '$timezone'])
  })

  test('the time zone of the app configuration is the default, and an invalid stored one counts as UTC', async () => {
    const groups = () => getGroups('x=moment&interval=quarter&name=dst')
    expect((await setTenantZone('Europe/Berlin')).status).toBe(200)
    expect(await groups()).toEqual([
      ['2029-Q1', 3],
      ['2029-Q2', 1],
    ])
    expect(await getGroups('x=moment&interval=quarter&name=dst&timezone=UTC')).toEqual([['2029-Q1', 4]])
    const refused = await setTenantZone('Europe/Atlantis')
    expect([statusAndCode(refused), refused.body.details[0].path]).toEqual([[400, 'INVALID_INPUT'], '/timezone'])
    expect((await groups()).length).toBe(2)
    await tenant.write(async (tx) => {
      const sql = 'update configurations set metadata = ? where key = ?'
      await tx.query(sql, [JSON.stringify({ timezone: 'Europe/Atlantis' }), 'app-configuration'])
    })
    await admin.put('/configurations/app-configuration', { appTitle: 'changed' })
    expect(await groups()).toEqual([['2029-Q1', 4]])
    expect((await admin.put('/configurations/app-configuration', { timezone: 'Europe/Atlantis' })).status).toBe(200)
  })

  test.each(['bar?x=moment&', 'pie?x=name&', 'sum?sum=worth&', 'count?'])(
    'charts/%s refuses an unknown time zone with 400 INVALID_INPUT',
    async (chart) => {
      for (const name of ['timezone', '$timezone']) {
        const answer = await as('user').get(`/blueprints/things/charts/${chart}${name}=Mars/Phobos`)
        expect([statusAndCode(answer), answer.body.details]).toEqual([
          [400, 'INVALID_INPUT'],
          [{ path: name, message: 'There is no time zone "Mars/Phobos". Use an IANA name such as Europe/Lisbon.' }],
        ])
      }
    },
  )
})

test('a field called timezone or interval is filtered by the bare name, and $timezone and $interval are the options', async () => {
  const fields = ['timezone', 'interval', 'moment'].map((key) => ({
    key,
    type: key === 'moment' ? 'datetime' : 'string',
  }))
  const permissions = fullAccessRules('tenant', 'user')
  await admin.post('/blueprints', { key: 'clocks', name: 'Clocks', fields, permissions })
  for (const timezone of ['Europe/Berlin', 'Mars/Phobos'])
    await admin.post('/blueprints/clocks/entities', { timezone, interval: 'day', moment: '2029-03-31T22:00:00Z' })
  const get = async (query: string) => (await admin.get(`/blueprints/clocks/charts/${query}`)).body
  expect((await get('count?timezone=Mars/Phobos&interval=day')).count).toBe(1)
  const { xAxis } = await get('bar?x=moment&timezone=Mars/Phobos&$timezone=Europe/Berlin&interval=day&$interval=month')
  expect(xAxis.data).toEqual(['2029-04-01'])
})

test('events are added up by the days, hours and quarters of a zone, and days in their filters begin in it', async () => {
  for (const time of ['2029-03-24T23:30:00Z', '2029-03-25T00:30:00Z', '2029-03-25T01:30:00Z', '2029-03-31T22:00:00Z']) {
    moveClock(Date.parse(time))
    await admin.post('/events', { source: 'shop', kind: 'zone', eventName: 'sold', metadata: { amount: 2 } })
  }
  moveClock(Date.parse('2029-04-02T00:00:00Z'))
  const sum = async (groupBy: string, query = 'timezone=Europe/Berlin') => {
    const { body } = await admin.get(`/events/sum?kind=zone&sum=amount&groupBy=${groupBy}&${query}`)
    return (body.groups as { group: string; sum: number }[]).map(({ group, sum }) => [group, sum])
  }
  expect(await sum('day')).toEqual([
    ['2029-03-25', 6],
    ['2029-04-01', 2],
  ])
  expect(await sum('day', '')).toEqual([
    ['2029-03-24', 2],
    ['2029-03-25', 4],
    ['2029-03-31', 2],
  ])
  expect(await sum('hour')).toEqual([
    ['2029-03-25T00:00:00+01:00', 2],
    ['2029-03-25T01:00:00+01:00', 2],
    ['2029-03-25T03:00:00+02:00', 2],
    ['2029-04-01T00:00:00+02:00', 2],
  ])
  expect(await sum('week')).toEqual([
    ['2029-03-19', 6],
    ['2029-03-26', 2],
  ])
  expect(await sum('month')).toEqual([
    ['2029-03', 6],
    ['2029-04', 2],
  ])
  expect(await sum('quarter')).toEqual([
    ['2029-Q1', 6],
    ['2029-Q2', 2],
  ])
  await setTenantZone('Europe/Berlin')
  expect(await sum('day', 'from=2029-03-25&to=2029-03-26')).toEqual([['2029-03-25', 6]])
  const { body } = await admin.get('/events/count?kind=zone&groupBy=day')
  expect(body.groups).toEqual([
    { group: '2029-03-25', count: 3 },
    { group: '2029-04-01', count: 1 },
  ])
  expect((await admin.get('/events/count?kind=zone&search=sold&groupBy=day')).body).toEqual(body)
  for (const route of ['', '/count', '/sum'])
    expect(statusAndCode(await admin.get(`/events${route}?sum=amount&timezone=Mars/Phobos`))).toEqual([
      400,
      'INVALID_INPUT',
    ])
})

describe.skipIf(!config.ATOLL_DATABASE_URL && !findPostgresBin())("charts and PostgreSQL's date_trunc", () => {
  const ZONES = ['Europe/Berlin', 'America/New_York', 'America/St_Johns', 'Australia/Lord_Howe', 'Africa/Cairo']
  let server: PostgresServer | undefined
  let client: pg.Client
  beforeAll(async () => {
    server = config.ATOLL_DATABASE_URL ? undefined : await startPostgres()
    client = new pg.Client({ connectionString: config.ATOLL_DATABASE_URL || server!.url })
    await client.connect()
  })
  afterAll(async () => {
    await client.end()
    await server?.stop()
  })

  /** Returns moments on the days of 2024 that have 23, 24 or 25 hours, the days before and after them, and others. */
  function drawMoments(timezone: string): number[] {
    const zone = findTimeZone(timezone)!
    const { below } = seededRandom(timezone.length)
    const moments: number[] = []
    for (let change = Date.UTC(2024, 0); change < Date.UTC(2025, 0); change = zone.spanAt(change).end)
      for (let n = 0; n < 25; n++) moments.push(change + (below(3 * 24 * 60) - 36 * 60) * MINUTE_MS)
    for (let n = 0; n < 20; n++) moments.push(Date.UTC(2023, 0) + below(700) * DAY_MS + below(1_440) * MINUTE_MS)
    return moments
  }

  test.each(ZONES)('agree on all intervals in %s, where their rules are the same', async (timezone) => {
    const zone = findTimeZone(timezone)!
    const times = drawMoments(timezone).map(toIsoString)
    const { rows: locals } = await client.query(
      `select to_char(t::timestamptz at time zone $1, 'YYYY-MM-DD"T"HH24:MI:SS') as local from unnest($2::text[]) as t`,
      [timezone, times],
    )
    const own = times.map((time) => new Date(zone.toLocal(Date.parse(time))).toISOString().slice(0, 19))
    // A server may have other rules than the installation.
    if (locals.some(({ local }, at) => local !== own[at]))
      return console.log(`PostgreSQL has other rules for ${timezone}.`)
    await importThings(
      fixture,
      times.map((moment) => ({ name: timezone, moment })),
    )
    // Hours of four days around a change, because a chart has at most 1,000 points.
    const change = zone.spanAt(Date.UTC(2024, 0)).end
    const [from, until] = [change - 2 * DAY_MS, change + 2 * DAY_MS].map(toIsoString) as [string, string]
    for (const interval of INTERVALS) {
      const isHour = interval === 'hour'
      const { rows } = await client.query(
        `select to_char(start at time zone $2, $4) as day, start, count(*)::int as count
          from (select date_trunc($1, t::timestamptz, $2) as start from unnest($3::text[]) as t) as starts
          group by start order by start`,
        [
          ...[interval, timezone, isHour ? times.filter((time) => time >= from && time < until) : times],
          interval === 'quarter' ? 'YYYY-"Q"Q' : 'YYYY-MM-DD',
        ],
      )
      const wanted = rows.map(({ day, start, count }) => [isHour ? zone.format(start.getTime()) : day, count])
      const filters = isHour ? `&moment[$gte]=${from}&moment[$lt]=${until}` : ''
      const groups = await getGroups(`x=moment&interval=${interval}&name=${timezone}&timezone=${timezone}${filters}`)
      expect([interval, groups.filter(([, count]) => count)]).toEqual([interval, wanted as never])
    }
  })
})
