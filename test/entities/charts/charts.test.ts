import { beforeAll, describe, expect, test } from 'bun:test'
import { callApi, fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture } from '../fixtures'

const LONG_TEXT = 'a long name '.repeat(40)
const fixture = await createThingsFixture([
  { key: 'name', type: 'string' },
  { key: 'stock', type: 'integer' },
  { key: 'weight', type: 'number' },
  { key: 'price', type: 'decimal', title: 'Price in euros' },
  { key: 'active', type: 'boolean' },
  { key: 'day', type: 'date' },
  { key: 'moment', type: 'datetime' },
  { key: 'clock', type: 'time' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'marks', type: 'integer', multi: true },
  { key: 'place', type: 'object' },
  { key: 'hidden', type: 'integer', readRoles: ['admin'] },
  { key: 'loose', type: 'string', indexed: false },
  { key: 'heap', type: 'string', indexed: false, multi: true },
])
const { as, path, anonymous } = fixture
const chartPath = (chart: string, query = '') => `/blueprints/things/charts/${chart}?${query}`
const getChart = async (type: string, query = '') => (await as('user').get(chartPath(type, query))).body
const getGroups = async (query: string) => {
  const { xAxis, series } = await getChart('bar', query)
  return xAxis.data.map((name: unknown, index: number) => [name, series[0].data[index]])
}

beforeAll(async () => {
  const things = [
    {
      name: 'b',
      stock: 10,
      weight: 0.1,
      price: '19.90',
      active: true,
      day: '2026-01-31',
      tags: ['x', 'y'],
      marks: [5, 5],
    },
    { name: 'a', stock: 9, weight: 0.2, price: '19.9', active: false, day: '2026-02-01', tags: ['x'], marks: [1] },
    { name: 'b', stock: 10, price: '0.10', moment: '2026-02-02T00:30:00+01:00', clock: '08:00', tags: [] },
    {
      name: LONG_TEXT,
      moment: '2026-02-01T23:30:00Z',
      clock: '08:59:59',
      place: { city: 'Ulm', rooms: [1, 2] },
      loose: 'l',
    },
    { clock: '23:00', place: { city: 'Ulm', rooms: [2, 'attic', true] }, hidden: 7, loose: 'k', heap: ['a'] },
  ]
  for (const thing of things) expect((await as('admin').post(path, thing)).status).toBe(201)
})

test('a count chart counts the entities that a list with the same query finds', async () => {
  expect(await getChart('count')).toEqual({ count: 5 })
  expect(await getChart('count', 'name=b')).toEqual({ count: 2 })
  expect(await getChart('count', 'stock[$gte]=10&$limit=1&$skip=1&$sort=-stock&$select=name&$flat=false')).toEqual({
    count: 2,
  })
  expect(await getChart('count', 'tags[$in]=x,y')).toEqual({ count: 2 })
  expect(await getChart('count', 'place.rooms=2')).toEqual({ count: 2 })
  expect(await getChart('count', 'place.rooms[$gte]=1')).toEqual({ count: 2 })
  expect(await getChart('count', 'name=')).toEqual({ count: 5 })
  expect(await getChart('count', 'name=nobody')).toEqual({ count: 0 })
})

test('groups are sorted by value and named by it, with Unknown for entities without a value at the end', async () => {
  expect(await getGroups('x=name')).toEqual([
    ['a', 1],
    [LONG_TEXT, 1],
    ['b', 2],
    ['Unknown', 1],
  ])
  expect(await getGroups('x=stock')).toEqual([
    [9, 1],
    [10, 2],
    ['Unknown', 2],
  ])
  expect(await getGroups('x=active')).toEqual([
    [false, 1],
    [true, 1],
    ['Unknown', 3],
  ])
  expect(await getGroups('x=loose')).toEqual([
    ['k', 1],
    ['l', 1],
    ['Unknown', 3],
  ])
})

test('groups are sorted like lists, also for characters beyond the basic plane', async () => {
  const { as, path } = await createThingsFixture([{ key: 'sign', type: 'string' }])
  for (const sign of ['\u{1f600}', '\uffee', 'z', '\u{1f600}a', 'ä', '\u{1f601}']) await as('user').post(path, { sign })
  const listed = (await as('user').get(`${path}?$sort=sign`)).body.map(({ sign }: { sign: string }) => sign)
  expect(listed).toEqual(['z', 'ä', '\uffee', '\u{1f600}', '\u{1f600}a', '\u{1f601}'])
  expect((await as('user').get('/blueprints/things/charts/bar?x=sign')).body.xAxis.data).toEqual(listed)
})

test('equal decimals form one group, which is named as the first of them was written', async () => {
  expect(await getGroups('x=price')).toEqual([
    ['0.10', 1],
    ['19.90', 2],
    ['Unknown', 2],
  ])
})

test('dates and datetimes are grouped by weekday in UTC, and times by hour', async () => {
  expect(await getGroups('x=day')).toEqual([
    [0, 1],
    [6, 1],
    ['Unknown', 3],
  ])
  expect(await getGroups('x=moment')).toEqual([
    [0, 2],
    ['Unknown', 3],
  ])
  expect(await getGroups('x=clock')).toEqual([
    [8, 2],
    [23, 1],
    ['Unknown', 2],
  ])
})

test('an entity with several values counts once in the group of each', async () => {
  expect(await getGroups('x=tags')).toEqual([
    ['x', 2],
    ['y', 1],
    ['Unknown', 3],
  ])
  expect(await getGroups('x=marks')).toEqual([
    [1, 1],
    [5, 1],
    ['Unknown', 3],
  ])
  expect(await getGroups('x=place.city')).toEqual([
    ['Ulm', 2],
    ['Unknown', 3],
  ])
  expect(await getGroups('x=place.rooms')).toEqual([
    [true, 1],
    [1, 1],
    [2, 2],
    ['attic', 1],
    ['Unknown', 3],
  ])
})

test('entities can be grouped by system fields', async () => {
  expect(await getGroups('x=user')).toEqual([[fixture.users.admin, 5]])
  expect(await getGroups('x=workspace')).toEqual([['Unknown', 5]])
  expect(await getGroups('x=created')).toEqual([[new Date().getUTCDay(), 5]])
  expect(await getGroups('x=updated&interval=year')).toEqual([[`${new Date().getUTCFullYear()}-01-01`, 5]])
  expect(await getGroups('x=identifier')).toHaveLength(5)
})

test('an interval returns a series without gaps, with the first day of each interval', async () => {
  const at = (interval: string, more = '') => getGroups(`x=day&day[$exists]=true&interval=${interval}${more}`)
  for (const [day, name] of [
    ['2026-02-05', 'c'],
    ['2027-01-01', 'd'],
  ])
    await as('admin').post(path, { identifier: name, day })
  expect(await at('day', '&day[$lt]=2026-03-01')).toEqual([
    ['2026-01-31', 1],
    ['2026-02-01', 1],
    ['2026-02-02', 0],
    ['2026-02-03', 0],
    ['2026-02-04', 0],
    ['2026-02-05', 1],
  ])
  expect(await at('week', '&day[$lt]=2026-03-01')).toEqual([
    ['2026-01-26', 2],
    ['2026-02-02', 1],
  ])
  const months = await at('month')
  expect(months.slice(0, 3)).toEqual([
    ['2026-01-01', 1],
    ['2026-02-01', 2],
    ['2026-03-01', 0],
  ])
  expect([months.length, months.at(-1)]).toEqual([13, ['2027-01-01', 1]])
  expect(await at('year')).toEqual([
    ['2026-01-01', 3],
    ['2027-01-01', 1],
  ])
  const sums = await getChart('sum', 'sum=stock&groupBy=day&interval=month&day[$lt]=2027')
  expect(statusAndCode({ status: 400, body: sums } as never)).toEqual([400, 'INVALID_INPUT'])
  expect(await getChart('sum', 'sum=stock&groupBy=day&interval=month&day[$lt]=2027-01-01')).toEqual({
    groups: [
      { group: '2026-01-01', sum: 10 },
      { group: '2026-02-01', sum: 9 },
    ],
    sum: 19,
  })
  for (const name of ['c', 'd']) await as('admin').delete(`${path}/${name}`)
})

test('a series of more than 1,000 points gets 400 INVALID_INPUT', async () => {
  await as('admin').post(path, { identifier: 'old', day: '1900-01-01' })
  const refused = await as('user').get(chartPath('line', 'x=day&interval=day'))
  expect(statusAndCode(refused)).toEqual([400, 'INVALID_INPUT'])
  expect(refused.body.details[0].path).toBe('interval')
  expect(await getGroups('x=day&interval=year')).toHaveLength(128)
  await as('admin').delete(`${path}/old`)
})

test('sums are exact, in total and by group', async () => {
  expect(await getChart('sum', 'sum=stock')).toEqual({ sum: 29 })
  expect(await getChart('sum', 'sum=price')).toEqual({ sum: 39.9 })
  expect(await getChart('sum', 'sum=weight')).toEqual({ sum: 0.1 + 0.2 })
  expect(await getChart('sum', 'sum=stock&name=nobody')).toEqual({ sum: 0 })
  expect(await getChart('sum', 'sum=stock&groupBy=name')).toEqual({
    groups: [
      { group: 'a', sum: 9 },
      { group: LONG_TEXT, sum: 0 },
      { group: 'b', sum: 20 },
      { group: 'Unknown', sum: 0 },
    ],
    sum: 29,
  })
  expect(await getChart('sum', 'sum=stock&groupBy=name&name=nobody')).toEqual({ groups: [], sum: 0 })
})

test('a sum adds every value of a list, and its total counts each entity once', async () => {
  expect(await getChart('sum', 'sum=marks')).toEqual({ sum: 11 })
  expect(await getChart('sum', 'sum=marks&groupBy=tags&tags=x')).toEqual({
    groups: [
      { group: 'x', sum: 11 },
      { group: 'y', sum: 10 },
    ],
    sum: 11,
  })
})

test('a sum that no number can represent is text', async () => {
  const most = Number.MAX_SAFE_INTEGER
  for (const [identifier, price] of [
    ['p', '12345678901234567.88'],
    ['q', '0.01'],
  ])
    await as('admin').post(path, { identifier, stock: most, price })
  expect(await getChart('sum', 'sum=stock&stock=9007199254740991')).toEqual({ sum: '18014398509481982' })
  expect(await getChart('sum', 'sum=price&stock=9007199254740991')).toEqual({ sum: '12345678901234567.89' })
  for (const identifier of ['p', 'q']) await as('admin').delete(`${path}/${identifier}`)
})

test('charts show sums instead of counts with the parameter sum', async () => {
  expect(await getGroups('x=name&sum=stock')).toEqual([
    ['a', 9],
    [LONG_TEXT, 0],
    ['b', 20],
    ['Unknown', 0],
  ])
  const { series } = await getChart('pie', 'x=active&sum=price&active=true')
  expect(series[0]).toMatchObject({ name: 'Price in euros', data: [{ name: true, value: 19.9 }] })
})

test('$limit and $skip page the groups, and a link leads to the next page', async () => {
  const { body, headers } = await as('user').get(chartPath('bar', 'x=name&$limit=2&$count=true'))
  expect(body.xAxis.data).toEqual(['a', LONG_TEXT])
  expect(headers.get('x-total-count')).toBe('4')
  const next = headers.get('link')!.match(/^<\/api(.*)>; rel="next"$/)![1]!
  const second = await as('user').get(next)
  expect(second.body.xAxis.data).toEqual(['b', 'Unknown'])
  expect(second.headers.get('link')).toBeNull()
  const filtered = await as('user').get(chartPath('bar', 'x=name&name[$ne]=what?&$limit=2'))
  expect(filtered.headers.get('link')).toContain('=what%3F&')
  expect(await getGroups('x=name&$skip=3')).toEqual([['Unknown', 1]])
  expect(await getGroups('x=name&$limit=2&$page=2')).toEqual([
    ['b', 2],
    ['Unknown', 1],
  ])
  expect(await getGroups('x=name&$skip=4')).toEqual([])
  expect(await getGroups('x=name&$limit=0')).toEqual([])
  const pie = await getChart('pie', 'x=name&$limit=1&$skip=2')
  expect(pie.series[0].data).toEqual([{ name: 'b', value: 2 }])
  expect(await getChart('sum', 'sum=stock&groupBy=name&$limit=1')).toEqual({
    groups: [{ group: 'a', sum: 9 }],
    sum: 29,
  })
})

describe('invalid charts', () => {
  test.each([
    ['bar', ''],
    ['pie', 'x='],
    ['pie', 'x=undefined'],
    ['bar', 'x=name&x=stock'],
    ['bar', 'x=nothing'],
    ['bar', 'x=hidden'],
    ['bar', 'x=place'],
    ['bar', 'x=name.part'],
    ['bar', 'x=place.a"b'],
    ['bar', 'x=place.a\\b'],
    ['bar', 'x=heap'],
    ['bar', 'x=constructor'],
    ['bar', 'x=name%00'],
    ['bar', 'x=name&nothing=1'],
    ['bar', 'x=name&$limit=x'],
    ['bar', 'x=name&interval=day'],
    ['bar', 'x=clock&interval=day'],
    ['bar', 'x=day&interval=hour'],
    ['bar', 'x=name&sum=name'],
    ['sum', ''],
    ['sum', 'groupBy=name'],
    ['sum', 'sum=name'],
    ['sum', 'sum=active'],
    ['sum', 'sum=day'],
    ['sum', 'sum=created'],
    ['sum', 'sum=hidden'],
    ['sum', 'sum=place'],
    ['sum', 'sum=place.rooms'],
    ['sum', 'sum=nothing'],
    ['sum', 'sum=stock&groupBy=nothing'],
    ['sum', 'sum=stock&groupBy=hidden'],
    ['sum', 'sum=stock&groupBy=place'],
    ['sum', 'sum=stock&interval=day'],
    ['sum', 'sum=stock&hidden=7'],
    ['count', 'hidden=7'],
    ['count', 'x=name'],
  ])('a chart with invalid parameters gets 400 INVALID_INPUT: %s?%s', async (type, query) => {
    const answer = await as('user').get(chartPath(type, query))
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
    expect(answer.body.details.length).toBeGreaterThan(0)
  })

  test('an unknown chart type gets 404 CHART_NOT_FOUND', async () => {
    for (const type of ['funnel', 'constructor', 'Line', '%00'])
      expect(statusAndCode(await as('user').get(chartPath(type, 'x=name')))).toEqual([404, 'CHART_NOT_FOUND'])
    expect(statusAndCode(await as('user').get('/blueprints/nothing/charts/bar?x=name'))).toEqual([
      404,
      'BLUEPRINT_NOT_FOUND',
    ])
  })
})

test('a hidden field can be charted by callers who may read it', async () => {
  const { body } = await as('admin').get(chartPath('bar', 'x=hidden'))
  expect(body.xAxis.data).toEqual([7, 'Unknown'])
  expect((await as('admin').get(chartPath('sum', 'sum=hidden'))).body).toEqual({ sum: 7 })
})

test('the API description contains the parameters and answers of charts', async () => {
  const { paths, components } = (await callApi('GET', `${fixture.origin}/openapi/json`)).body
  const { parameters, responses } = paths['/api/blueprints/{key}/charts/{type}'].get
  const required = parameters.filter(({ required }: { required: boolean }) => required)
  expect(required.map(({ name }: { name: string }) => name).sort()).toEqual(['key', 'type', 'x'])
  for (const [chart, shown] of Object.entries({ count: 'count', sum: 'groups', pie: 'series' })) {
    const { 200: ok } = paths[`/api/blueprints/{key}/charts/${chart}`].get.responses
    const name = ok.content['application/json'].schema.$ref.split('/').at(-1)
    expect(Object.keys(components.schemas[name].properties), chart).toContain(shown)
  }
  expect(Object.keys(responses)).toEqual(['200', '400', '401', '403', '404', '429', '503', 'default'])
})

test('a field with the name of a chart parameter can be filtered with an operator', async () => {
  const { as, path } = await createThingsFixture([
    { key: 'x', type: 'integer' },
    { key: 'sum', type: 'integer' },
  ])
  for (const x of [1, 1, 2]) await as('user').post(path, { x, sum: 3 })
  expect((await as('user').get(chartPath('bar', 'x=x&sum=sum&x[$in]=1'))).body.series[0].data).toEqual([6])
  expect((await as('user').get(chartPath('count', 'x=1&sum=3'))).body).toEqual({ count: 2 })
})

describe('access to charts', () => {
  const all = ['count', 'sum?sum=stock', 'pie?x=name', 'line?x=name', 'nothing?x=name']

  test('charts get 401 for anonymous callers, and 403 for callers without a rule', async () => {
    const { as, anonymous } = await createThingsFixture(
      [
        { key: 'name', type: 'string' },
        { key: 'stock', type: 'integer' },
      ],
      fullAccessRules('user', 'friend'),
    )
    for (const one of all) {
      expect(statusAndCode(await anonymous.get(`/blueprints/things/charts/${one}`)), one).toEqual([
        401,
        'UNAUTHENTICATED',
      ])
      expect(statusAndCode(await as('user').get(`/blueprints/things/charts/${one}`)), one).toEqual([403, 'FORBIDDEN'])
    }
    expect(statusAndCode(await as('admin').get('/blueprints/things/charts/nothing'))).toEqual([404, 'CHART_NOT_FOUND'])
  })

  test('charts are open to anonymous callers where guests may read', async () => {
    const permissions = [...fullAccessRules('tenant', 'user'), { operation: 'read', scope: 'tenant', guest: true }]
    const { as, anonymous, path } = await createThingsFixture([{ key: 'name', type: 'string' }], permissions)
    await as('user').post(path, { name: 'a' })
    expect((await anonymous.get(chartPath('count'))).body).toEqual({ count: 1 })
    expect((await anonymous.get(chartPath('pie', 'x=name'))).body.series[0].data).toEqual([{ name: 'a', value: 1 }])
  })

  test('charts contain only entities in the scope of the caller', async () => {
    const { as, path, users } = await createThingsFixture(
      [{ key: 'stock', type: 'integer' }],
      fullAccessRules('user', 'user'),
    )
    for (const stock of [1, 2, 2]) await as('user').post(path, { stock })
    for (const stock of [2, 40]) await as('other').post(path, { stock })
    const chartsOf = async (name: 'admin' | 'user' | 'other', more = '') => [
      (await as(name).get(chartPath('count', more))).body.count,
      (await as(name).get(chartPath('count', `stock=2${more}`))).body.count,
      (await as(name).get(chartPath('sum', `sum=stock${more}`))).body.sum,
      (await as(name).get(chartPath('bar', `x=stock${more}`))).body.xAxis.data,
      (await as(name).get(chartPath('pie', `x=user${more}`))).body.series[0].data.length,
    ]
    expect(await chartsOf('user')).toEqual([3, 2, 5, [1, 2], 1])
    expect(await chartsOf('other')).toEqual([2, 1, 42, [2, 40], 1])
    expect(await chartsOf('admin')).toEqual([5, 3, 47, [1, 2, 40], 2])
    expect(await chartsOf('admin', '&bypassAdmin=true')).toEqual([0, 0, 0, [], 0])
    await as('admin').post(path, { stock: 3, user: users.admin })
    expect(await chartsOf('admin', '&bypassAdmin=true')).toEqual([1, 0, 3, [3], 1])
  })

  test('charts contain nothing of another tenant', async () => {
    const otherTenant = await createThingsFixture([{ key: 'name', type: 'string' }])
    expect((await otherTenant.as('user').get(chartPath('count'))).body).toEqual({ count: 0 })
    expect((await otherTenant.as('user').get(chartPath('pie', 'x=name'))).body.series[0].data).toEqual([])
    expect(statusAndCode(await anonymous.get(chartPath('count')))).toEqual([401, 'UNAUTHENTICATED'])
  })
})

test.each([
  ['pie', 'groupBy=name', 'x', 'This chart groups by x. Send x=name instead of groupBy=name.'],
  ['bar', 'x=name&groupBy=stock', 'groupBy', 'This chart groups by x. Send x=stock instead of groupBy=stock.'],
  ['sum', 'sum=stock&x=name', 'x', 'A sum groups by groupBy. Send groupBy=name instead of x=name.'],
  ['pie', '', 'x', 'x is required: the field to group by, such as x=name.'],
  ['sum', '', 'sum', 'sum is required: the numeric field to add up, such as sum=stock. Add groupBy=… for groups.'],
  ['sum', 'sum=name', 'sum', '"name" is not numeric, so it cannot be summed. Sum one of: stock, weight, price, marks.'],
  [
    'bar',
    'x=name&interval=day',
    'interval',
    '"name" is not a date, so it has no intervals. Remove interval, or group by',
  ],
  ['bar', 'x=day&interval=days', 'interval', 'hour, day, week, month, quarter, year. Did you mean day?'],
  ['sum', 'sum=stock&groupby=name', 'groupby', 'Unknown parameter "groupby". Did you mean groupBy?'],
  ['bar', 'x=day&intervall=day', 'intervall', 'Unknown parameter "intervall". Did you mean interval?'],
  ['count', 'groupBy=name', 'groupBy', 'A count has no groups. Use charts/bar?x=… or charts/pie?x=…'],
])('charts/%s?%s is refused with what to send instead', async (chart, query, parameter, message) => {
  const answer = await as('user').get(chartPath(chart, query))
  expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
  expect(answer.body.details).toEqual([{ path: parameter, message: expect.stringContaining(message) }])
})

test('an unknown chart gets 404 CHART_NOT_FOUND with the charts that exist', async () => {
  const answer = await as('user').get(chartPath('donut', 'x=name'))
  expect(statusAndCode(answer)).toEqual([404, 'CHART_NOT_FOUND'])
  expect(answer.body.message).toBe('There is no chart "donut". Use one of: line, bar, scatter, area, pie, count, sum.')
})
