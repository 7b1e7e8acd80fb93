import { afterEach, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { connect } from 'node:net'
import { setRoles } from '../../../src/accounts/users/users'
import { appendChanges } from '../../../src/entities/changes/change-log'
import { closeAllStreams } from '../../../src/entities/changes/feed'
import { countStreams } from '../../../src/entities/changes/stream-limit'
import type { Tx } from '../../../src/storage/port'
import { deleteTenant, resolveTenant, setStatus } from '../../../src/tenancy/tenants'
import {
  advanceClock,
  bearer,
  resetClock,
  SECOND,
  signInForCookie,
  signInForTokens,
} from '../../accounts/session-fixtures'
import { fullAccessRules } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { createThingsFixture } from '../fixtures'
import { type Follower, openStream, startTestServer, summarize } from './stream-client'

setDefaultTimeout(30_000)
const { listener, changes, server } = startTestServer()
const fields = [
  { key: 'title', type: 'text' },
  { key: 'n', type: 'integer' },
]
type ThingsFixture = Awaited<ReturnType<typeof createThingsFixture>>
const noStreamsLeft = () => waitUntil(() => !countStreams())
afterEach(async () => {
  resetClock()
  closeAllStreams()
  await noStreamsLeft()
})

describe('a stream', () => {
  test('an idle stream gets keep-alive comments with the latest id, and has no server timeout', async () => {
    const own = await createThingsFixture(fields)
    const cut = spyOn(server, 'timeout')
    const response = await fetch(changes('?n=1'), { headers: { tenant: own.id, 'x-api-key': own.tokens.user } })
    expect(cut.mock.calls.map(([, seconds]) => seconds)).toEqual([0])
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    const ready = (await reader.read()).value!
    await own.as('user').post(own.path, { n: 2 })
    advanceClock(16 * SECOND)
    const [, before, print] = /id: (\d+)\.([\w.]+)/.exec(ready)!
    expect((await reader.read()).value).toBe(`:\nid: ${Number(before) + 1}.${print}\n\n`)
    await own.as('user').post(own.path, { n: 1 })
    expect((await reader.read()).value).toStartWith('event: create\n')
    // At its end, a client has 10 seconds to read the rest.
    closeAllStreams()
    expect(cut.mock.calls.map(([, seconds]) => seconds)).toEqual([0, 10])
    cut.mockRestore()
    expect((await reader.read()).done).toBeTrue()
  })

  test('/api/v1 has the same stream as /api', async () => {
    const own = await createThingsFixture(fields)
    const headers = { tenant: own.id, 'x-api-key': own.tokens.user }
    await using stream = await openStream(changes().replace('/api/', '/api/v1/'), headers)
    await stream.next()
    await own.as('user').post(own.path, { identifier: 'a' })
    expect(await stream.take(1)).toEqual(['create a'])
  })

  test('a stream that its client closes frees its place', async () => {
    const own = await createThingsFixture(fields)
    const streams = await Promise.all(Array.from({ length: 20 }, () => listener(own, 'user')))
    expect(countStreams()).toBe(20)
    for (const one of streams.slice(1)) one.close()
    await waitUntil(() => countStreams() === 1)
    await own.as('user').post(own.path, { identifier: 'a' })
    expect(await streams[0]!.take(1)).toEqual(['create a'])
    streams[0]!.close()
    await noStreamsLeft()
  })

  test('a stream ends when the server closes all streams, and can be resumed by its last id', async () => {
    const own = await createThingsFixture(fields)
    const stream = await listener(own, 'user')
    await own.as('user').post(own.path, { identifier: 'a' })
    expect(await stream.take(1)).toEqual(['create a'])
    closeAllStreams()
    expect(await stream.take(1)).toEqual(['end'])
    await own.as('user').post(own.path, { identifier: 'b' })
    await using resumed = await listener(own, 'user', '', 'things', { 'last-event-id': stream.last })
    expect(await resumed.take(1)).toEqual(['create b'])
  })

  test('the 101st stream of a caller gets 429 with Retry-After: 10, until another one is closed', async () => {
    const own = await createThingsFixture(fields, [
      ...fullAccessRules('tenant', 'user'),
      { operation: 'read', scope: 'tenant', guest: true },
    ])
    const streams = await Promise.all(Array.from({ length: 100 }, () => listener(own, 'user')))
    const refused = await fetch(changes(), { headers: { tenant: own.id, 'x-api-key': own.tokens.user } })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10'])
    await using otherStream = await listener(own, 'other')
    await using guestStream = await openStream(changes(), { tenant: own.id })
    expect([otherStream.status, guestStream.status]).toEqual([200, 200])
    streams[0]!.close()
    await waitUntil(() => countStreams() === 101)
    expect((await listener(own, 'user')).status).toBe(200)
  })
})

/** Opens a stream whose client can be paused. */
function openSlowStream(own: ThingsFixture, last = '') {
  const more = last && `last-event-id: ${last}\r\n`
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  let received = ''
  const socket = connect(server.port!, '127.0.0.1', () =>
    socket.write(
      `GET ${new URL(changes()).pathname} HTTP/1.1\r\nhost: a\r\ntenant: ${own.id}\r\nx-api-key: ${own.tokens.user}\r\nconnection: close\r\n${more}\r\n`,
    ),
  )
  socket.on('data', (text) => {
    received += text
  })
  socket.on('error', () => {}).on('close', () => resolve())
  return { socket, closed, received: () => received }
}

describe('slow clients', () => {
  test('a client that reads nothing for half a minute is disconnected, and can resume by its last id', async () => {
    const own = await createThingsFixture(fields)
    const { socket, closed, received } = openSlowStream(own)
    await waitUntil(() => received().includes('event: ready'))
    socket.pause()
    const title = 'x'.repeat(500_000)
    const names = Array.from({ length: 60 }, (_, n) => `e${n}`)
    for (const identifier of names) await own.as('user').post(own.path, { identifier, title })
    await using quick = await listener(own, 'user', '?$select=n', 'things')
    advanceClock(31 * SECOND)
    // The quick client still gets changes.
    await own.as('user').post(own.path, { identifier: 'end' })
    expect(await quick.take(1)).toEqual(['create end'])
    await waitUntil(() => countStreams() === 1)
    socket.resume()
    await closed
    const ids = [...received().matchAll(/^id: (\S+)/gm)].map(([, id]) => id!)
    const got = [...received().matchAll(/^event: create\n.*\n.*?"identifier":"(\w+)"/gm)].map(([, name]) => name!)
    expect(got.length).toBeLessThan(60)
    expect(got).toEqual(names.slice(0, got.length))
    await using resumed = await listener(own, 'user', '', 'things', { 'last-event-id': ids[got.length]! })
    expect(await resumed.take(61 - got.length)).toEqual(
      [...names.slice(got.length), 'end'].map((one) => `create ${one}`),
    )
  })
})

describe('streams of callers who lose access', () => {
  const expectEnd = async (stream: Follower) => expect(summarize(await stream.next())).toBe('end')
  /** Lets all streams look whether their callers may still listen, as they do after a long silence. */
  const passSilence = () => advanceClock(16 * SECOND)

  test('a stream ends when its session signs out or its API token is revoked', async () => {
    const own = await createThingsFixture(fields)
    const pair = await signInForTokens(own, 'user')
    const cookie = await signInForCookie(own, 'user')
    const by = (headers: Record<string, string>) => openStream(changes(), { tenant: own.id, ...headers })
    const streams = await Promise.all([by(bearer(pair.token)), by(cookie), by({ 'x-api-key': own.tokens.user })])
    for (const one of streams) expect((await one.next())?.event).toBe('ready')
    await own.anonymous.with(bearer(pair.token)).post('/logout')
    passSilence()
    await expectEnd(streams[0]!)
    await own.anonymous.with(cookie).post('/logout')
    passSilence()
    await expectEnd(streams[1]!)
    const session = await signInForTokens(own, 'user')
    const mine = own.anonymous.with(bearer(session.token))
    for (const { _id } of (await mine.get('/me/api-tokens')).body) await mine.delete(`/me/api-tokens/${_id}`)
    passSilence()
    await expectEnd(streams[2]!)
  })

  test('a stream ends when its access token expires', async () => {
    const own = await createThingsFixture(fields)
    const { token, expiresIn } = await signInForTokens(own, 'user')
    const stream = await openStream(changes(), { tenant: own.id, ...bearer(token) })
    await stream.next()
    advanceClock((expiresIn - 60) * SECOND)
    await own.as('admin').post(own.path, { identifier: 'a' })
    expect(await stream.take(1)).toEqual(['create a'])
    advanceClock(61 * SECOND)
    await expectEnd(stream)
  })

  test('a stream ends when its user loses the role for reading, and sends no later change', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('tenant', 'plugin'))
    const stream = await listener(own, 'editor')
    await setRoles(own.tenant, 'editor', ['user'])
    await own.as('admin').post(own.path, { identifier: 'a' })
    await expectEnd(stream)
  })

  test('a stream ends when its filter field becomes hidden, its rule is removed, or its tenant is suspended', async () => {
    const own = await createThingsFixture(fields)
    const [all, filtered] = [await listener(own, 'user'), await listener(own, 'user', '?n=1')]
    const admin = own.as('admin')
    const guarded = fields.map((field) => (field.key === 'n' ? { ...field, readRoles: ['plugin'] } : field))
    await admin.put('/blueprints/things', { fields: guarded })
    passSilence()
    await expectEnd(filtered)
    expect(await all.take(1)).toEqual(['reset'])
    await admin.post(own.path, { identifier: 'a', n: 1, title: 'x' })
    expect((await all.next())?.data.metadata).toEqual({ title: 'x' })
    await admin.put('/blueprints/things', { permissions: fullAccessRules('tenant', 'plugin') })
    passSilence()
    await expectEnd(all)
    const last = await listener(own, 'editor')
    await setStatus(own.id, 'suspended')
    passSilence()
    await expectEnd(last)
  })

  test('a stream ends when its tenant is deleted', async () => {
    const own = await createThingsFixture(fields)
    const stream = await listener(own, 'user')
    await deleteTenant(own.id)
    await expectEnd(stream)
  })

  test('a stream gets a reset when its entities are altered, and sends their new fields afterwards', async () => {
    const own = await createThingsFixture(fields)
    const admin = own.as('admin')
    await admin.post(own.path, { identifier: 'a', title: 'Emma' })
    const stream = await listener(own, 'user')
    const [title, ...others] = fields
    const renamed = [{ ...title, key: 'name', renamedFrom: 'title' }, ...others]
    expect((await admin.put('/blueprints/things', { fields: renamed })).status).toBe(200)
    passSilence()
    expect(await stream.take(1)).toEqual(['reset'])
    await admin.put(`${own.path}/a`, { n: 1 })
    const update = await stream.next()
    expect([update?.event, update?.data.name, update?.data.title]).toEqual(['update', 'Emma', undefined])
  })

  test('a stream gets a reset when its caller may read less, and sends only that afterwards', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user'))
    const stream = await listener(own, 'user')
    const admin = own.as('admin')
    await admin.put('/blueprints/things', { permissions: fullAccessRules('user', 'user') })
    passSilence()
    expect(await stream.take(1)).toEqual(['reset'])
    await admin.post(own.path, { identifier: 'hers' })
    await own.as('user').post(own.path, { identifier: 'mine' })
    expect(await stream.take(1)).toEqual(['create mine'])
    // A change that does not concern their access does not interrupt the stream.
    await admin.put('/blueprints/things', { name: 'Other things' })
    await own.as('user').put(`${own.path}/mine`, { n: 1 })
    expect(await stream.take(1)).toEqual(['update mine'])
  })
})

describe('many streams', () => {
  test('60 streams of a blueprint read each change by one statement in total', async () => {
    const own = await createThingsFixture(fields)
    const streams = await Promise.all(
      Array.from({ length: 60 }, (_, n) => listener(own, 'user', n % 2 ? '?n[$gte]=0' : `?n=${n}`)),
    )
    const { db } = await resolveTenant(new Request(own.origin, { headers: { host: `${own.id}.test` } }))
    const queries = spyOn(db, 'query')
    await own.as('user').post(own.path, { identifier: 'a', n: 4 })
    for (const [n, one] of streams.entries()) if (n % 2 || n === 4) expect(await one.take(1)).toEqual(['create a'])
    expect(queries.mock.calls.filter(([sql]) => sql.includes('entity_changes')).length).toBe(1)
    queries.mockRestore()
  })

  test('180 streams send all changes of concurrent writes in the same order', async () => {
    const own = await createThingsFixture(fields)
    const streams = await Promise.all(Array.from({ length: 90 }, () => listener(own, 'user', '?$select=n')))
    const more = await Promise.all(Array.from({ length: 90 }, () => listener(own, 'other', '?n[$lt]=50')))
    const writing = Promise.all(Array.from({ length: 100 }, (_, n) => own.as('user').post(own.path, { n })))
    const numbers = async (one: Follower, count: number) => {
      const found = []
      while (found.length < count) found.push((await one.next())?.data.n)
      return found
    }
    const received = await Promise.all(streams.map((one) => numbers(one, 100)))
    await writing
    for (const one of received) expect(one).toEqual(received[0]!)
    expect([...received[0]!].sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n))
    const low = received[0]!.filter((n) => n < 50)
    for (const one of more) expect(await numbers(one, 50)).toEqual(low)
  })
})

test('a stream sends changes that another process has made', async () => {
  const own = await createThingsFixture(fields)
  await using stream = await listener(own, 'user')
  const time = new Date().toISOString()
  const system = { _id: 'x', identifier: 'far', created: time, updated: time, user: null, workspace: null }
  const shown = `${JSON.stringify(system).slice(1, -1)},"metadata":{}`
  // Without afterCommit, this process gets no notice of the commit, like that of another process.
  const withoutNotice = (tx: Tx): Tx => ({ ...tx, afterCommit: () => {} })
  await own.tenant.write((tx) => appendChanges(withoutNotice(tx), 'things', [{ after: { shown, keys: '{}' } }]))
  expect(await stream.take(1)).toEqual(['create far'])
})
