import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { registerUser } from '../../src/accounts/users/users'
import { moveClock, now } from '../../src/core/clock'
import { yieldToEventLoop } from '../../src/core/event-loop'
import { freeReadMs } from '../../src/entities/query/read-costs'
import { removeOld } from '../../src/events/events'
import { emit, emitAll } from '../../src/jobs/outbox'
import { withLease } from '../../src/jobs/with-lease'
import { costlyWork } from '../../src/tenancy/fair-queue'
import { createTestTenant, statusAndCode, type TestResponse } from '../test-tenant'

setDefaultTimeout(30_000)

const DAY = 86_400_000
const times = (n: number) => Array.from({ length: n }, (_, i) => i)

/** A test tenant with a user who may read all events and create new ones. */
async function createEventsFixture() {
  const testTenant = await createTestTenant()
  const curator = await registerUser(testTenant.tenant, { username: 'curator', email: 'curator@example.com' }, [
    'editor',
  ])
  const { token } = await issueApiToken(testTenant.tenant, curator._id, { nickname: 'test' })
  return { ...testTenant, curator: { _id: curator._id, ...testTenant.anonymous.with({ 'x-api-key': token }) } }
}
const eventNamesOf = ({ body }: TestResponse) => body.map(({ eventName }: { eventName: string }) => eventName)

describe('event records', () => {
  afterEach(() => moveClock())

  test('curators and admins create events, and curators read them newest first', async () => {
    const { as, curator, users } = await createEventsFixture()
    const event = {
      source: 'shop',
      kind: 'order',
      eventName: 'placed',
      description: 'An order',
      metadata: { total: 12.5 },
    }
    const { status, body } = await curator.post('/events', event)
    expect(status).toBe(201)
    expect(body).toEqual({
      ...event,
      _id: expect.any(String),
      user: curator._id,
      workspace: null,
      created: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    })
    expect((await as('admin').post('/events', { eventName: 'second' })).body).toMatchObject({
      source: 'api',
      kind: 'custom',
      user: users.admin,
      metadata: {},
    })
    expect(eventNamesOf(await curator.get('/events'))).toEqual(['second', 'placed'])
    expect((await curator.get(`/events/${body._id}`)).body).toEqual(body)
  })

  test('POST /api/events refuses malformed events with 400 INVALID_INPUT, and an unknown id answers 404 EVENT_NOT_FOUND', async () => {
    const { curator } = await createEventsFixture()
    for (const wrong of [{ kind: 1 }, { metadata: 'x' }, { eventName: 'x'.repeat(201) }, { source: 'a\nb' }, []])
      expect(statusAndCode(await curator.post('/events', wrong))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await curator.post('/events', { description: 'a\0b' }))).toEqual([400, 'INVALID_INPUT'])
    expect((await curator.get('/events')).body).toEqual([])
    for (const id of ['x', '%00', 'a%2Fb'])
      expect(statusAndCode(await curator.get(`/events/${id}`))).toEqual([404, 'EVENT_NOT_FOUND'])
  })

  test('an event without source, kind and eventName is refused with 400 INVALID_INPUT', async () => {
    const { as, curator } = await createEventsFixture()
    for (const empty of [{}, { description: 'x', metadata: { a: 1 } }, { source: '', kind: '', eventName: '' }])
      for (const client of [as('admin'), as('editor'), curator])
        expect(statusAndCode(await client.post('/events', empty))).toEqual([400, 'INVALID_INPUT'])
    for (const enough of [{ source: 'shop' }, { kind: 'order' }, { eventName: 'placed' }])
      expect((await as('admin').post('/events', enough)).status).toBe(201)
  })

  test.each([
    'accounts',
    'blueprints',
    'entities',
    'payments',
    'ai',
    'plugins',
    'content',
    'jobs',
    'storage',
    ' Payments ',
  ])(
    'an event of the system source "%s" is refused with 403 FORBIDDEN, and a plugin gets the source plugin:',
    async (source) => {
      const { as, curator } = await createEventsFixture()
      const forged = { source, kind: 'subscription', eventName: 'subscription-activated' }
      for (const client of [as('admin'), curator])
        expect(statusAndCode(await client.post('/events', forged))).toEqual([403, 'FORBIDDEN'])
      expect((await as('editor').post('/events', forged)).body.source).toBe(`plugin:${source}`)
      expect((await curator.get('/events')).body).toHaveLength(1)
    },
  )

  test('POST /api/events refuses metadata of more than 65,536 characters as JSON with 400 INVALID_INPUT', async () => {
    const { curator } = await createEventsFixture()
    const createWith = (length: number) =>
      curator.post('/events', { kind: 'order', metadata: { a: 'x'.repeat(length) } })
    expect((await createWith(65_536 - '{"a":""}'.length)).status).toBe(201)
    const refused = await createWith(65_536)
    expect([statusAndCode(refused), refused.body.details]).toEqual([
      [400, 'INVALID_INPUT'],
      [{ path: '/metadata', message: 'The metadata must have at most 65536 characters as JSON.' }],
    ])
  })

  test('users can neither read nor create events, and plugins can create but not read them', async () => {
    const { as, anonymous } = await createEventsFixture()
    for (const path of ['', '/count', '/filter-options', '/sum?sum=x', '/x']) {
      expect(statusAndCode(await as('user').get(`/events${path}`))).toEqual([403, 'FORBIDDEN'])
      expect(statusAndCode(await as('editor').get(`/events${path}`))).toEqual([403, 'FORBIDDEN'])
      expect(statusAndCode(await anonymous.get(`/events${path}`))).toEqual([401, 'UNAUTHENTICATED'])
    }
    expect(statusAndCode(await as('user').post('/events', {}))).toEqual([403, 'FORBIDDEN'])
    expect((await as('editor').post('/events', { source: 'accounts' })).body.source).toBe('plugin:accounts')
    expect((await as('editor').post('/events', { source: 'plugin:x' })).body.source).toBe('plugin:x')
  })

  test('events of another tenant are neither listed, counted nor found by id', async () => {
    const [one, other] = [await createEventsFixture(), await createEventsFixture()]
    const { body } = await one.curator.post('/events', { kind: 'secret' })
    expect((await other.curator.get('/events')).body).toEqual([])
    expect((await other.curator.get('/events/count')).body).toEqual({ count: 0 })
    expect((await other.curator.get('/events/filter-options')).body.kinds).toEqual([])
    expect((await other.curator.get(`/events/${body._id}`)).status).toBe(404)
  })

  test('GET /api/events filters by equality, by several values, by search and by time', async () => {
    const { curator, tenant, users } = await createEventsFixture()
    const start = Date.parse('2026-03-10T12:00:00Z')
    const events = [
      [-400, 'a', 'order', 'placed', 'Grüße'],
      [-40, 'b', 'order', 'paid', ''],
      [-8, 'a', 'user', 'paid', 'Rückgabe'],
      [-2, 'a', 'order', 'sent', '100% done'],
      [-0.5, 'b', 'user', 'sent', ''],
    ] as const
    for (const [days, source, kind, eventName, description] of events) {
      moveClock(start + days * DAY)
      await tenant.write((tx) =>
        emit(tenant, tx, { source, kind, eventName, description, metadata: { _id: `of-${days}` }, user: users.user }),
      )
    }
    moveClock(start)
    const expected: [string, number][] = [
      ['', 5],
      ['kind=order', 3],
      ['kind=order,user', 5],
      ['kind=order&source=a', 2],
      ['eventName=paid,sent&source=b', 2],
      [`user=${users.user}`, 5],
      [`user=${users.admin}`, 0],
      ['workspace=x', 0],
      ['kind=undefined&source=', 5],
      ['search=GRÜSSE', 0],
      ['search=grÜ', 1],
      ['search=100%25', 1],
      ['search=PAID', 2],
      ['search=paid&kind=user', 1],
      ['search=of--40', 2],
      ['period=last-day', 1],
      ['period=last-week', 2],
      ['period=last-month', 3],
      ['period=last-year', 4],
      ['period=all-time', 5],
      ['from=2026-03-08T12:00:00Z', 2],
      ['to=2026-03-08T12:00:00Z', 3],
      ['from=2026-03-01&to=2026-03-09', 2],
    ]
    for (const [query, count] of expected) {
      expect((await curator.get(`/events?${query}`)).body, query).toHaveLength(count)
      expect((await curator.get(`/events/count?${query}`)).body, query).toEqual({ count })
    }
    const [byDay, found] = [
      await curator.get('/events/count?groupBy=day&from=2026-03-01'),
      await curator.get('/events/count?groupBy=day&search=paid'),
    ]
    expect(byDay.body.groups.map(({ count }: { count: number }) => count)).toEqual([1, 1, 1])
    expect(byDay.body).toMatchObject({ count: 3, groups: [{}, {}, {}] })
    expect(found.body.count).toBe(2)
    for (const { group } of [...byDay.body.groups, ...found.body.groups]) expect(group).toMatch(/^2026-\d\d-\d\d$/)
    for (const query of ['period=never', 'from=yesterday', 'to=x', 'limit=-1', 'sort=metadata'])
      expect(statusAndCode(await curator.get(`/events?${query}`)), query).toEqual([400, 'INVALID_INPUT'])
    expect((await curator.get('/events/filter-options')).body).toEqual({
      kinds: ['order', 'user'],
      eventNames: ['paid', 'placed', 'sent'],
      sources: ['a', 'b'],
    })
  })

  test('the pages of GET /api/events link to all events, with and without a search', async () => {
    const { curator, tenant } = await createEventsFixture()
    const event = { source: 'a', kind: 'b' }
    for (const _ of times(25))
      await tenant.write(async (tx) => {
        for (const n of times(100)) await emit(tenant, tx, { ...event, eventName: `e${n % 5}` })
      })
    for (const query of ['eventName=e1', 'search=E1']) {
      const seen = new Set<string>()
      let path: string | undefined = `/events?${query}&limit=200&count=true`
      while (path) {
        const { body, headers } = await curator.get(path)
        for (const { _id } of body) seen.add(_id)
        expect(headers.get('x-total-count')).toBe('500')
        path = headers.get('link')?.match(/<\/api([^>]+)>; rel="next"/)?.[1]
      }
      expect(seen.size).toBe(500)
    }
    expect((await curator.get('/events')).body).toHaveLength(100)
    expect((await curator.get('/events?limit=5000')).body).toHaveLength(1_000)
  })

  test('GET /api/events/sum adds up a number of the metadata exactly and in groups', async () => {
    const { curator, tenant } = await createEventsFixture()
    const events: [string, string, unknown][] = [
      ['2025-12-31T23:59:00.000Z', 'a', { amount: 0.1, deep: { n: 1 } }],
      ['2026-01-01T00:00:00.000Z', 'a', { amount: 0.2 }],
      ['2026-01-01T05:00:00.000Z', 'b', { amount: 1e16, deep: { n: 2 } }],
      ['2026-02-01T05:00:00.000Z', 'b', { amount: -1e16 }],
      ['2026-02-01T05:00:00.000Z', 'b', { amount: 'much' }],
    ]
    for (const [time, kind, metadata] of events) {
      moveClock(Date.parse(time))
      await tenant.write((tx) =>
        emit(tenant, tx, { source: 's', kind, eventName: 'e', metadata: metadata as Record<string, unknown> }),
      )
    }
    const sum = async (query: string) => (await curator.get(`/events/sum?${query}`)).body
    expect(await sum('sum=amount')).toEqual({ sum: 0.30000000000000004 })
    expect(await sum('sum=metadata.deep.n')).toEqual({ sum: 3 })
    expect(await sum('sum=__proto__.x')).toEqual({ sum: 0 })
    expect(await sum('sum=amount&kind=a&groupBy=year')).toEqual({
      sum: 0.30000000000000004,
      groups: [
        { group: '2025', sum: 0.1, count: 1 },
        { group: '2026', sum: 0.2, count: 1 },
      ],
    })
    const keys = async (groupBy: string) =>
      (await sum(`sum=amount&groupBy=${groupBy}`)).groups.map((one: { group: string }) => one.group)
    expect(await keys('day')).toEqual(['2025-12-31', '2026-01-01', '2026-02-01'])
    expect(await keys('month')).toEqual(['2025-12', '2026-01', '2026-02'])
    expect(await keys('kind')).toEqual(['a', 'b'])
    expect(await keys('source')).toEqual(['s'])
    expect(await keys('eventName')).toEqual(['e'])
    for (const query of ['', 'sum=', 'sum=amount&groupBy=minute'])
      expect(statusAndCode(await curator.get(`/events/sum?${query}`)), query).toEqual([400, 'INVALID_INPUT'])
  })

  test('removeOld removes events after ninety days and always keeps the newest', async () => {
    const { curator, tenant } = await createEventsFixture()
    const start = now()
    for (const [days, eventName] of [
      [0, 'first'],
      [1, 'second'],
      [30, 'third'],
    ] as const) {
      moveClock(start + days * DAY)
      await tenant.write((tx) => emit(tenant, tx, { source: 'a', kind: 'b', eventName }))
    }
    const left = async (days: number) => {
      moveClock(start + days * DAY)
      await withLease(tenant, 'housekeeping', removeOld)
      return eventNamesOf(await curator.get('/events'))
    }
    expect(await left(89.9)).toEqual(['third', 'second', 'first'])
    expect(await left(90.5)).toEqual(['third', 'second'])
    expect(await left(500)).toEqual(['third'])
  })

  test('a search through thousands of events counts each once and yields to other requests', async () => {
    const { curator, tenant } = await createEventsFixture()
    const newEvent = (n: number) => ({ source: 'shop', kind: 'order', eventName: `placed-${n}` })
    await tenant.write((tx) => emitAll(tenant, tx, times(8_000).map(newEvent)))
    let [turns, over] = [0, false]
    const others = (async () => {
      for (; !over; turns++) {
        if (turns === 2)
          await tenant.write((tx) => emit(tenant, tx, { source: 'shop', kind: 'order', eventName: 'placed-late' }))
        await yieldToEventLoop()
      }
    })()
    const { body, headers } = await curator.get('/events?search=placed&limit=2&count=true')
    over = true
    await others
    expect(turns).toBeGreaterThan(6)
    expect(body).toHaveLength(2)
    expect(headers.get('x-total-count')).toBeOneOf(['8000', '8001'])
    const count = (await curator.get('/events/count?search=placed-39')).body
    expect(count).toEqual({ count: 111 })
  })
})

describe('scans of events', () => {
  const defaults = { ...freeReadMs }
  // Every read is costly from its second statement on.
  beforeAll(() => Object.assign(freeReadMs, { thread: 0, waiting: 0 }))
  afterAll(() => void Object.assign(freeReadMs, defaults))

  test.each(['events?search=placed-59&count=true', 'events/count?search=placed-59', 'events/sum?sum=amount'])(
    'GET /api/%s takes turns with other costly work of its tenant, and reads by id do not',
    async (path) => {
      const { curator, tenant, id } = await createEventsFixture()
      const newEvent = (n: number) => ({
        ...{ source: 'shop', kind: 'order', eventName: `placed-${n}`, metadata: { amount: 1 } },
      })
      await tenant.write((tx) => emitAll(tenant, tx, times(600).map(newEvent)))
      const expected = await curator.get(`/${path}`)
      expect(expected.status).toBe(200)
      const [{ _id }] = (await curator.get('/events?limit=1')).body
      const held = Promise.withResolvers<void>()
      const occupant = costlyWork.run({ tenant: id, caller: 'another caller' }, () => held.promise)
      let hasAnswered = false
      const answer = curator.get(`/${path}`).finally(() => {
        hasAnswered = true
      })
      for (const _ of times(5)) expect((await curator.get(`/events/${_id}`)).status).toBe(200)
      await Bun.sleep(50)
      expect(hasAnswered).toBe(false)
      held.resolve()
      await occupant
      const { status, body } = await answer
      expect([status, body]).toEqual([200, expected.body])
    },
  )
})
