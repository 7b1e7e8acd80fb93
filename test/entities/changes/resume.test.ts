import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { now } from '../../../src/core/clock'
import { removeOld } from '../../../src/entities/changes/change-log'
import { countStreams } from '../../../src/entities/changes/stream-limit'
import { withLease } from '../../../src/jobs/with-lease'
import { costlyWork } from '../../../src/tenancy/fair-queue'
import { moveTenant } from '../../../src/tenancy/move'
import { advanceClock, DAY, resetClock, SECOND } from '../../accounts/session-fixtures'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../../property-runner'
import { databaseUrl } from '../../storage/engines'
import { fullAccessRules } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { createThingsFixture } from '../fixtures'
import { startTestServer, summarize } from './stream-client'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)
afterEach(resetClock)
const { listener } = startTestServer()
const HOUR_MS = DAY / 24
const fields = [
  { key: 'title', type: 'string' },
  { key: 'n', type: 'integer' },
]
type ThingsFixture = Awaited<ReturnType<typeof createThingsFixture>>
const resumeStream = (own: ThingsFixture, last: string, query = '', name: 'user' | 'editor' = 'user') =>
  listener(own, name, query, 'things', { 'last-event-id': last })
const listenedUntil = async ({ tenant }: ThingsFixture) =>
  Number((await tenant.db.query('select until from change_logs'))[0]![0])
/** Waits until an open stream has renewed the log. */
const logRenewed = (own: ThingsFixture) => waitUntil(async () => (await listenedUntil(own)) > now() + DAY - HOUR_MS)
const runHousekeeping = ({ tenant }: ThingsFixture) => withLease(tenant, 'housekeeping', removeOld)
const countRows = async ({ tenant }: ThingsFixture, table = 'entity_changes') =>
  Number((await tenant.db.query(`select count(*) from ${table}`))[0]![0])

describe('a stream that is resumed by its last id', () => {
  test('a resumed stream sends the changes since its last id, which a header or the query may give', async () => {
    const own = await createThingsFixture(fields)
    const user = own.as('user')
    const stream = await listener(own, 'user')
    await user.post(own.path, { identifier: 'a' })
    expect(await stream.take(1)).toEqual(['create a'])
    stream.close()
    await user.put(`${own.path}/a`, { n: 1 })
    await user.post(own.path, { identifier: 'b' })
    await using resumed = await resumeStream(own, stream.last)
    expect(await resumed.take(2)).toEqual(['update a', 'create b'])
    await using also = await listener(own, 'user', `?lastEventId=${stream.last}`)
    expect(await also.take(2)).toEqual(['update a', 'create b'])
    await user.delete(`${own.path}/a`)
    expect([await resumed.take(1), await also.take(1)]).toEqual([['delete a'], ['delete a']])
  })

  test('a resumed stream reads what it missed in a turn of its tenant, and other tenants do not wait for that', async () => {
    const openAndMiss = async () => {
      const own = await createThingsFixture(fields)
      const stream = await listener(own, 'user')
      await own.as('user').post(own.path, { identifier: 'a' })
      await stream.take(1)
      stream.close()
      await own.as('user').post(own.path, { identifier: 'b' })
      return { own, last: stream.last }
    }
    const [busy, other] = [await openAndMiss(), await openAndMiss()]
    const { promise, resolve } = Promise.withResolvers<void>()
    const work = costlyWork.run({ tenant: busy.own.id, caller: 'somebody else' }, () => promise)
    let isOpen = false
    const waiting = resumeStream(busy.own, busy.last).then((stream) => {
      isOpen = true
      return stream
    })
    await using ofOther = await resumeStream(other.own, other.last)
    expect(await ofOther.take(1)).toEqual(['create b'])
    expect(isOpen).toBe(false)
    resolve()
    await work
    await using resumed = await waiting
    expect(await resumed.take(1)).toEqual(['create b'])
  })

  test('a resumed stream sends each entity as it was at the time of the change', async () => {
    const own = await createThingsFixture(fields)
    const stream = await listener(own, 'user')
    await own.as('user').post(own.path, { identifier: 'a', n: 0 })
    await stream.take(1)
    stream.close()
    for (const n of [1, 2, 3]) await own.as('user').put(`${own.path}/a`, { n })
    await own.as('user').delete(`${own.path}/a`)
    await using resumed = await resumeStream(own, stream.last, '')
    for (const n of [1, 2, 3]) expect((await resumed.next())?.data.n).toBe(n)
    expect(await resumed.take(1)).toEqual(['delete a'])
  })

  test('a resumed stream with a filter keeps a client in line with the list, wherever the connection broke', () =>
    checkProperty(
      5,
      fc.asyncProperty(
        fc.array(
          fc.record({ name: fc.constantFrom('a', 'b', 'c'), n: fc.option(fc.nat(9), { freq: 4 }), cut: fc.boolean() }),
          { minLength: 5, maxLength: 25 },
        ),
        async (steps) => {
          const own = await createThingsFixture(fields)
          const user = own.as('user')
          const known = new Map<string, unknown>()
          let stream = await listener(own, 'user', '?n[$gte]=4')
          const readEvent = async () => {
            const received = await stream.next()
            const { event, data } = received!
            // A create is never repeated, and an update or delete always follows a create.
            expect(known.has(data.identifier), summarize(received)).toBe(event !== 'create')
            if (event === 'delete') known.delete(data.identifier)
            else known.set(data.identifier, data)
          }
          const listed = new Map<string, unknown>()
          let waiting = 0
          for (const { name, n, cut } of steps) {
            const before = listed.has(name)
            const operation =
              n === null ? { op: 'delete', identifier: name } : { op: 'upsert', identifier: name, data: { n } }
            await user.post(`${own.path}/batch`, { operations: [operation] })
            const { body } = await user.get(`${own.path}?n[$gte]=4`)
            listed.clear()
            for (const one of body) listed.set(one.identifier, one)
            if (before || listed.has(name)) waiting++
            if (!cut) continue
            // The client has read some events before the connection broke, and not the rest.
            for (let left = waiting >> 1; left > 0; left--, waiting--) await readEvent()
            stream.close()
            stream = await resumeStream(own, stream.last, '?n[$gte]=4')
          }
          for (; waiting > 0; waiting--) await readEvent()
          expect(known).toEqual(listed)
          stream.close()
        },
      ),
    ))

  test('a resumed stream finds the few matching changes among thousands', async () => {
    const own = await createThingsFixture(fields)
    const stream = await listener(own, 'user', '?n=7')
    stream.close()
    for (let at = 0; at < 12; at++) {
      const operations = Array.from({ length: 200 }, (_, n) => ({ op: 'create', data: { n: at % 2 ? n : -n } }))
      expect((await own.as('user').post(`${own.path}/batch`, { operations })).status).toBe(200)
    }
    await using resumed = await resumeStream(own, stream.last, '?n=7')
    await own.as('user').post(own.path, { identifier: 'end', n: 7 })
    const events = await resumed.take(7)
    expect([events.at(-1), events.filter((one) => one.startsWith('create')).length]).toEqual(['create end', 7])
  })
})

describe('reset of a resumed stream', () => {
  test.each(['x', '1', '99999.00000000', '1.zzzzzzzz', '-1.00000000', '9'.repeat(30)])(
    'a stream that is resumed by the invalid id %s gets a reset, and all later changes',
    async (id) => {
      const own = await createThingsFixture(fields)
      await using stream = await resumeStream(own, id)
      const first = await stream.next()
      expect([first?.event, first?.data.message]).toEqual(['reset', expect.stringContaining('Reload the list')])
      await own.as('user').post(own.path, { identifier: 'a' })
      expect(await stream.take(1)).toEqual(['create a'])
      await using resumed = await resumeStream(own, first!.id)
      expect(await resumed.take(1)).toEqual(['create a'])
    },
  )

  test('a resumed stream gets a reset when changes after its last id were removed after a day', async () => {
    const own = await createThingsFixture(fields)
    const stream = await listener(own, 'user')
    await own.as('user').post(own.path, { identifier: 'a' })
    await stream.take(1)
    const first = stream.last
    advanceClock(DAY / 2)
    await logRenewed(own)
    await own.as('user').post(own.path, { identifier: 'b' })
    await stream.take(1)
    await runHousekeeping(own)
    expect(await countRows(own)).toBe(2)
    advanceClock(DAY / 2 + SECOND)
    await runHousekeeping(own)
    // The log goes on, because a stream has been open all the time.
    expect([await countRows(own), await countRows(own, 'change_logs')]).toEqual([1, 1])
    stream.close()
    const one = await resumeStream(own, first)
    expect(await one.take(1)).toEqual(['create b'])
    one.close()
    advanceClock(DAY / 2)
    await waitUntil(() => !countStreams())
    await using late = await listener(own, 'user')
    await runHousekeeping(own)
    await using resumed = await resumeStream(own, first)
    expect(await resumed.take(1)).toEqual(['reset'])
    await own.as('user').post(own.path, { identifier: 'c' })
    expect([await late.take(1), await resumed.take(1)]).toEqual([['create c'], ['create c']])
  })

  test('a resumed stream gets a reset after more changes than the log keeps', async () => {
    const own = await createThingsFixture(fields)
    const stream = await listener(own, 'user')
    await own.as('user').post(own.path, { identifier: 'a' })
    await stream.take(1)
    stream.close()
    // This simulates 60,000 changes.
    await own.tenant.write((tx) => tx.query("update versions set version = version + 60000 where topic = 'changes'"))
    const operations = Array.from({ length: 250 }, () => ({ op: 'create', data: {} }))
    for (let n = 0; n < 4; n++) await own.as('user').post(`${own.path}/batch`, { operations })
    expect(await countRows(own)).toBe(1_000)
    await using late = await resumeStream(own, stream.last)
    expect(await late.take(1)).toEqual(['reset'])
  })

  test('a resumed stream gets a reset when its filter, user or permissions have changed', async () => {
    const own = await createThingsFixture(
      [...fields, { key: 'cost', type: 'integer', readRoles: ['plugin'] }],
      fullAccessRules('tenant', 'user', 'plugin'),
    )
    const stream = await listener(own, 'user', '?n=1')
    await own.as('admin').post(own.path, { identifier: 'a', n: 1 })
    await stream.take(1)
    const last = stream.last
    stream.close()
    for (const [query, name] of [
      ['?n=2', 'user'],
      ['', 'user'],
      ['?n=1', 'editor'],
    ] as const) {
      await using resumed = await resumeStream(own, last, query, name)
      expect(await resumed.take(1), `${name} ${query}`).toEqual(['reset'])
    }
    await own.as('admin').put('/blueprints/things', { permissions: fullAccessRules('user', 'user') })
    await using resumed = await resumeStream(own, last, '?n=1')
    expect(await resumed.take(1)).toEqual(['reset'])
  })

  test('a last id that is forged to start before its own stream gets a reset, and reveals no hidden changes', async () => {
    const [n, pay] = [
      { key: 'n', type: 'number' },
      { key: 'pay', type: 'number' },
    ] as const
    const own = await createThingsFixture([n, { ...pay, readRoles: ['payroll'] }])
    const first = await listener(own, 'user')
    first.close()
    const admin = own.as('admin')
    await admin.post(own.path, { identifier: 'a', pay: 4711 })
    for (const fields of [[n], [n, pay]]) expect((await admin.put('/blueprints/things', { fields })).status).toBe(200)
    const stream = await listener(own, 'user')
    await admin.put(`${own.path}/a`, { n: 1 })
    await stream.take(1)
    stream.close()
    const [number, since, seal] = stream.last.split('.')
    for (const id of [`0.${since}.${seal}`, `0.0.${seal}`, `${number}.0.${seal}`, `0.${seal}`, `${since}.${seal}`]) {
      await using resumed = await resumeStream(own, id)
      expect(await resumed.take(1), id).toEqual(['reset'])
    }
    await using resumed = await resumeStream(own, `${since}.${since}.${seal}`)
    expect(await resumed.take(1)).toEqual(['update a'])
  })

  test('a resumed stream gets a reset when its blueprint was deleted and created again', async () => {
    const own = await createThingsFixture(fields)
    const stream = await listener(own, 'user')
    await own.as('user').post(own.path, { identifier: 'a' })
    await stream.take(1)
    stream.close()
    const admin = own.as('admin')
    await admin.delete('/blueprints/things?force=true')
    expect([await countRows(own), await countRows(own, 'change_logs')]).toEqual([0, 0])
    await admin.post('/blueprints', {
      key: 'things',
      name: 'Things',
      fields,
      permissions: fullAccessRules('tenant', 'user'),
    })
    await using resumed = await resumeStream(own, stream.last)
    expect(await resumed.take(1)).toEqual(['reset'])
  })
})

describe('retention of changes', () => {
  test('changes are logged only for blueprints that have had a stream', async () => {
    const own = await createThingsFixture(fields)
    await own.as('user').post(own.path, { identifier: 'a' })
    await own.as('user').put(`${own.path}/a`, { n: 1 })
    await own.as('user').delete(`${own.path}/a`)
    const rows = [await countRows(own), await countRows(own, 'change_logs')]
    const [version] = await own.tenant.db.query("select version from versions where topic = 'changes'")
    expect([rows, version]).toEqual([[0, 0], undefined])
    const stream = await listener(own, 'user')
    stream.close()
    await own.as('user').post(own.path, { identifier: 'b' })
    expect(await countRows(own)).toBe(1)
  })

  test('changes are logged for a day after the last stream of a blueprint', async () => {
    const own = await createThingsFixture(fields)
    const stream = await listener(own, 'user')
    stream.close()
    advanceClock(DAY - SECOND)
    await runHousekeeping(own)
    await own.as('user').post(own.path, { identifier: 'a' })
    expect(await countRows(own)).toBe(1)
    advanceClock(2 * SECOND)
    await runHousekeeping(own)
    await own.as('user').post(own.path, { identifier: 'b' })
    expect([await countRows(own), await countRows(own, 'change_logs')]).toEqual([0, 0])
  })

  test('changes are logged for as long as a stream stays open', async () => {
    const own = await createThingsFixture(fields)
    const stream = await listener(own, 'user')
    for (let hours = 0; hours < 30; hours += 5) {
      advanceClock(5 * HOUR_MS)
      await logRenewed(own)
      await runHousekeeping(own)
    }
    await own.as('user').post(own.path, { identifier: 'a' })
    expect(await stream.take(1)).toEqual(['create a'])
    stream.close()
  })
})

test.skipIf(!databaseUrl)(
  'a stream of a tenant that moves to another database ends, and can be resumed there',
  async () => {
    const own = await createThingsFixture(fields)
    const stream = await listener(own, 'user')
    await own.as('user').post(own.path, { identifier: 'a' })
    await own.as('user').post(own.path, { identifier: 'b' })
    expect(await stream.take(1)).toEqual(['create a'])
    const { last } = stream
    await moveTenant(own.id, 'sqlite', () => {})
    expect(await stream.take(2)).toEqual(['create b', 'end'])
    await own.as('user').post(own.path, { identifier: 'c' })
    await using resumed = await resumeStream(own, last)
    expect(await resumed.take(2)).toEqual(['create b', 'create c'])
  },
)
