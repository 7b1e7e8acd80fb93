import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { now } from '../../../src/core/clock'
import { removeOld } from '../../../src/entities/changes/change-log'
import { countStreams } from '../../../src/entities/changes/stream-limit'
import { withLease } from '../../../src/jobs/with-lease'
import { moveTenant } from '../../../src/tenancy/move'
import { advanceClock, DAY, resetClock, SECOND } from '../../accounts/session-fixtures'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../../property-runner'
import { databaseUrl } from '../../storage/engines'
import { fullAccessRules } from '../../test-tenant'
import { createThingsFixture } from '../fixtures'
import { startTestServer, summarize, waitUntil } from './stream-client'

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
/** Whoever listens on says so. */
const logRenewed = (own: ThingsFixture) => waitUntil(async () => (await listenedUntil(own)) > now() + DAY - HOUR_MS)
const runHousekeeping = ({ tenant }: ThingsFixture) => withLease(tenant, 'housekeeping', removeOld)
const countRows = async ({ tenant }: ThingsFixture, table = 'entity_changes') =>
  Number((await tenant.db.query(`select count(*) from ${table}`))[0]![0])

describe('whoever comes again with the last id', () => {
  test('is told what happened since, by the header or the query', async () => {
    const own = await createThingsFixture(fields)
    const user = own.as('user')
    const heard = await listener(own, 'user')
    await user.post(own.path, { identifier: 'a' })
    expect(await heard.take(1)).toEqual(['create a'])
    heard.close()
    await user.put(`${own.path}/a`, { n: 1 })
    await user.post(own.path, { identifier: 'b' })
    await using again = await resumeStream(own, heard.last)
    expect(await again.take(2)).toEqual(['update a', 'create b'])
    await using also = await listener(own, 'user', `?lastEventId=${heard.last}`)
    expect(await also.take(2)).toEqual(['update a', 'create b'])
    await user.delete(`${own.path}/a`)
    expect([await again.take(1), await also.take(1)]).toEqual([['delete a'], ['delete a']])
  })

  test('is told each state as it was then, not as it is by now', async () => {
    const own = await createThingsFixture(fields)
    const heard = await listener(own, 'user')
    await own.as('user').post(own.path, { identifier: 'a', n: 0 })
    await heard.take(1)
    heard.close()
    for (const n of [1, 2, 3]) await own.as('user').put(`${own.path}/a`, { n })
    await own.as('user').delete(`${own.path}/a`)
    await using again = await resumeStream(own, heard.last, '')
    for (const n of [1, 2, 3]) expect((await again.next())?.data.n).toBe(n)
    expect(await again.take(1)).toEqual(['delete a'])
  })

  test('has the list exactly, wherever it was cut off and whatever happened', () =>
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
          const has = new Map<string, unknown>()
          let heard = await listener(own, 'user', '?n[$gte]=4')
          const hear = async () => {
            const told = await heard.next()
            const { event, data } = told!
            // Nothing is told twice, and nothing of what was not told before.
            expect(has.has(data.identifier), summarize(told)).toBe(event !== 'create')
            if (event === 'delete') has.delete(data.identifier)
            else has.set(data.identifier, data)
          }
          const shown = new Map<string, unknown>()
          let waiting = 0
          for (const { name, n, cut } of steps) {
            const before = shown.has(name)
            const operation =
              n === null ? { op: 'delete', identifier: name } : { op: 'upsert', identifier: name, data: { n } }
            await user.post(`${own.path}/batch`, { operations: [operation] })
            const { body } = await user.get(`${own.path}?n[$gte]=4`)
            shown.clear()
            for (const one of body) shown.set(one.identifier, one)
            if (before || shown.has(name)) waiting++
            if (!cut) continue
            // Some of it was heard before the connection broke, and not the rest.
            for (let left = waiting >> 1; left > 0; left--, waiting--) await hear()
            heard.close()
            heard = await resumeStream(own, heard.last, '?n[$gte]=4')
          }
          for (; waiting > 0; waiting--) await hear()
          expect(has).toEqual(shown)
          heard.close()
        },
      ),
    ))

  test('is told it though thousands of changes happened, of which few concern them', async () => {
    const own = await createThingsFixture(fields)
    const heard = await listener(own, 'user', '?n=7')
    heard.close()
    for (let at = 0; at < 12; at++) {
      const operations = Array.from({ length: 200 }, (_, n) => ({ op: 'create', data: { n: at % 2 ? n : -n } }))
      expect((await own.as('user').post(`${own.path}/batch`, { operations })).status).toBe(200)
    }
    await using again = await resumeStream(own, heard.last, '?n=7')
    await own.as('user').post(own.path, { identifier: 'end', n: 7 })
    const told = await again.take(7)
    expect([told.at(-1), told.filter((one) => one.startsWith('create')).length]).toEqual(['create end', 7])
  })
})

describe('is told to start again', () => {
  test.each(['x', '1', '99999.00000000', '1.zzzzzzzz', '-1.00000000', '9'.repeat(30)])(
    'by an id that is none: %s',
    async (id) => {
      const own = await createThingsFixture(fields)
      await using heard = await resumeStream(own, id)
      const told = await heard.next()
      expect([told?.event, told?.data.message]).toEqual(['reset', expect.stringContaining('Reload the list')])
      await own.as('user').post(own.path, { identifier: 'a' })
      expect(await heard.take(1)).toEqual(['create a'])
      await using again = await resumeStream(own, told!.id)
      expect(await again.take(1)).toEqual(['create a'])
    },
  )

  test('after a day, for what happened then is not kept any longer', async () => {
    const own = await createThingsFixture(fields)
    const heard = await listener(own, 'user')
    await own.as('user').post(own.path, { identifier: 'a' })
    await heard.take(1)
    const first = heard.last
    advanceClock(DAY / 2)
    await logRenewed(own)
    await own.as('user').post(own.path, { identifier: 'b' })
    await heard.take(1)
    await runHousekeeping(own)
    expect(await countRows(own)).toBe(2)
    advanceClock(DAY / 2 + SECOND)
    await runHousekeeping(own)
    // The log goes on, for somebody has listened all the time.
    expect([await countRows(own), await countRows(own, 'change_logs')]).toEqual([1, 1])
    heard.close()
    const one = await resumeStream(own, first)
    expect(await one.take(1)).toEqual(['create b'])
    one.close()
    advanceClock(DAY / 2)
    await waitUntil(() => !countStreams())
    await using late = await listener(own, 'user')
    await runHousekeeping(own)
    await using again = await resumeStream(own, first)
    expect(await again.take(1)).toEqual(['reset'])
    await own.as('user').post(own.path, { identifier: 'c' })
    expect([await late.take(1), await again.take(1)]).toEqual([['create c'], ['create c']])
  })

  test('when so much has happened that it is not kept', async () => {
    const own = await createThingsFixture(fields)
    const heard = await listener(own, 'user')
    await own.as('user').post(own.path, { identifier: 'a' })
    await heard.take(1)
    heard.close()
    // As if it were after 60,000 changes.
    await own.tenant.write((tx) => tx.query("update versions set version = version + 60000 where topic = 'changes'"))
    const operations = Array.from({ length: 250 }, () => ({ op: 'create', data: {} }))
    for (let n = 0; n < 4; n++) await own.as('user').post(`${own.path}/batch`, { operations })
    expect(await countRows(own)).toBe(1_000)
    await using late = await resumeStream(own, heard.last)
    expect(await late.take(1)).toEqual(['reset'])
  })

  test('when what they may see, or ask for, is another thing now', async () => {
    const own = await createThingsFixture(
      [...fields, { key: 'cost', type: 'integer', readRoles: ['plugin'] }],
      fullAccessRules('tenant', 'user', 'plugin'),
    )
    const heard = await listener(own, 'user', '?n=1')
    await own.as('admin').post(own.path, { identifier: 'a', n: 1 })
    await heard.take(1)
    const last = heard.last
    heard.close()
    for (const [query, name] of [
      ['?n=2', 'user'],
      ['', 'user'],
      ['?n=1', 'editor'],
    ] as const) {
      await using again = await resumeStream(own, last, query, name)
      expect(await again.take(1), `${name} ${query}`).toEqual(['reset'])
    }
    await own.as('admin').put('/blueprints/things', { permissions: fullAccessRules('user', 'user') })
    await using again = await resumeStream(own, last, '?n=1')
    expect(await again.take(1)).toEqual(['reset'])
  })

  test('when an id says to have been there before: what was hidden is not told because nothing of that name is by now', async () => {
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
    const heard = await listener(own, 'user')
    await admin.put(`${own.path}/a`, { n: 1 })
    await heard.take(1)
    heard.close()
    const [number, since, seal] = heard.last.split('.')
    for (const id of [`0.${since}.${seal}`, `0.0.${seal}`, `${number}.0.${seal}`, `0.${seal}`, `${since}.${seal}`]) {
      await using again = await resumeStream(own, id)
      expect(await again.take(1), id).toEqual(['reset'])
    }
    await using again = await resumeStream(own, `${since}.${since}.${seal}`)
    expect(await again.take(1)).toEqual(['update a'])
  })

  test('when the blueprint was removed meanwhile, and made anew', async () => {
    const own = await createThingsFixture(fields)
    const heard = await listener(own, 'user')
    await own.as('user').post(own.path, { identifier: 'a' })
    await heard.take(1)
    heard.close()
    const admin = own.as('admin')
    await admin.delete('/blueprints/things?force=true')
    expect([await countRows(own), await countRows(own, 'change_logs')]).toEqual([0, 0])
    await admin.post('/blueprints', {
      key: 'things',
      name: 'Things',
      fields,
      permissions: fullAccessRules('tenant', 'user'),
    })
    await using again = await resumeStream(own, heard.last)
    expect(await again.take(1)).toEqual(['reset'])
  })
})

describe('changes are kept', () => {
  test('only of blueprints that somebody has listened to', async () => {
    const own = await createThingsFixture(fields)
    await own.as('user').post(own.path, { identifier: 'a' })
    await own.as('user').put(`${own.path}/a`, { n: 1 })
    await own.as('user').delete(`${own.path}/a`)
    const rows = [await countRows(own), await countRows(own, 'change_logs')]
    const [version] = await own.tenant.db.query("select version from versions where topic = 'changes'")
    expect([rows, version]).toEqual([[0, 0], undefined])
    const heard = await listener(own, 'user')
    heard.close()
    await own.as('user').post(own.path, { identifier: 'b' })
    expect(await countRows(own)).toBe(1)
  })

  test('for a day after the last who listened', async () => {
    const own = await createThingsFixture(fields)
    const heard = await listener(own, 'user')
    heard.close()
    advanceClock(DAY - SECOND)
    await runHousekeeping(own)
    await own.as('user').post(own.path, { identifier: 'a' })
    expect(await countRows(own)).toBe(1)
    advanceClock(2 * SECOND)
    await runHousekeeping(own)
    await own.as('user').post(own.path, { identifier: 'b' })
    expect([await countRows(own), await countRows(own, 'change_logs')]).toEqual([0, 0])
  })

  test('for as long as somebody listens, without their coming again', async () => {
    const own = await createThingsFixture(fields)
    const heard = await listener(own, 'user')
    for (let hours = 0; hours < 30; hours += 5) {
      advanceClock(5 * HOUR_MS)
      await logRenewed(own)
      await runHousekeeping(own)
    }
    await own.as('user').post(own.path, { identifier: 'a' })
    expect(await heard.take(1)).toEqual(['create a'])
    heard.close()
  })
})

test.skipIf(!databaseUrl)(
  'a tenant that moves takes its changes along: the stream ends, and goes on from there',
  async () => {
    const own = await createThingsFixture(fields)
    const heard = await listener(own, 'user')
    await own.as('user').post(own.path, { identifier: 'a' })
    await own.as('user').post(own.path, { identifier: 'b' })
    expect(await heard.take(1)).toEqual(['create a'])
    const { last } = heard
    await moveTenant(own.id, 'sqlite', () => {})
    expect(await heard.take(2)).toEqual(['create b', 'end'])
    await own.as('user').post(own.path, { identifier: 'c' })
    await using again = await resumeStream(own, last)
    expect(await again.take(2)).toEqual(['create b', 'create c'])
  },
)
