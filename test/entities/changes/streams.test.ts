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
import { createThingsFixture } from '../fixtures'
import { type Follower, openStream, startTestServer, summarize, waitUntil } from './stream-client'

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
  test('is kept alive where nothing happens, by words that are no event, and with the latest id', async () => {
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
    // At its end, who does not take the rest is not waited for any longer.
    closeAllStreams()
    expect(cut.mock.calls.map(([, seconds]) => seconds)).toEqual([0, 10])
    cut.mockRestore()
    expect((await reader.read()).done).toBeTrue()
  })

  test('is the same at the address with the version', async () => {
    const own = await createThingsFixture(fields)
    const headers = { tenant: own.id, 'x-api-key': own.tokens.user }
    await using heard = await openStream(changes().replace('/api/', '/api/v1/'), headers)
    await heard.next()
    await own.as('user').post(own.path, { identifier: 'a' })
    expect(await heard.take(1)).toEqual(['create a'])
  })

  test('whose client goes away frees its place', async () => {
    const own = await createThingsFixture(fields)
    const heard = await Promise.all(Array.from({ length: 20 }, () => listener(own, 'user')))
    expect(countStreams()).toBe(20)
    for (const one of heard.slice(1)) one.close()
    await waitUntil(() => countStreams() === 1)
    await own.as('user').post(own.path, { identifier: 'a' })
    expect(await heard[0]!.take(1)).toEqual(['create a'])
    heard[0]!.close()
    await noStreamsLeft()
  })

  test('ends with the server, and goes on at the next one', async () => {
    const own = await createThingsFixture(fields)
    const heard = await listener(own, 'user')
    await own.as('user').post(own.path, { identifier: 'a' })
    expect(await heard.take(1)).toEqual(['create a'])
    closeAllStreams()
    expect(await heard.take(1)).toEqual(['end'])
    await own.as('user').post(own.path, { identifier: 'b' })
    await using again = await listener(own, 'user', '', 'things', { 'last-event-id': heard.last })
    expect(await again.take(1)).toEqual(['create b'])
  })

  test('is one of a hundred at most for a caller', async () => {
    const own = await createThingsFixture(fields, [
      ...fullAccessRules('tenant', 'user'),
      { operation: 'read', scope: 'tenant', guest: true },
    ])
    const heard = await Promise.all(Array.from({ length: 100 }, () => listener(own, 'user')))
    const refused = await fetch(changes(), { headers: { tenant: own.id, 'x-api-key': own.tokens.user } })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10'])
    await using other = await listener(own, 'other')
    await using guest = await openStream(changes(), { tenant: own.id })
    expect([other.status, guest.status]).toEqual([200, 200])
    heard[0]!.close()
    await waitUntil(() => countStreams() === 101)
    expect((await listener(own, 'user')).status).toBe(200)
  })
})

/** A client that sends a request, and takes what comes only when it is told to. */
function openSlowStream(own: ThingsFixture, last = '') {
  const more = last && `last-event-id: ${last}\r\n`
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  let heard = ''
  const socket = connect(server.port!, '127.0.0.1', () =>
    socket.write(
      `GET ${new URL(changes()).pathname} HTTP/1.1\r\nhost: a\r\ntenant: ${own.id}\r\nx-api-key: ${own.tokens.user}\r\nconnection: close\r\n${more}\r\n`,
    ),
  )
  socket.on('data', (text) => {
    heard += text
  })
  socket.on('error', () => {}).on('close', () => resolve())
  return { socket, closed, heard: () => heard }
}

describe('who takes nothing', () => {
  test('is left after half a minute, and by the last id goes on where they were', async () => {
    const own = await createThingsFixture(fields)
    const { socket, closed, heard } = openSlowStream(own)
    await waitUntil(() => heard().includes('event: ready'))
    socket.pause()
    const title = 'x'.repeat(500_000)
    const names = Array.from({ length: 60 }, (_, n) => `e${n}`)
    for (const identifier of names) await own.as('user').post(own.path, { identifier, title })
    await using quick = await listener(own, 'user', '?$select=n', 'things')
    advanceClock(31 * SECOND)
    // The quick one is told on.
    await own.as('user').post(own.path, { identifier: 'end' })
    expect(await quick.take(1)).toEqual(['create end'])
    await waitUntil(() => countStreams() === 1)
    socket.resume()
    await closed
    const ids = [...heard().matchAll(/^id: (\S+)/gm)].map(([, id]) => id!)
    const got = [...heard().matchAll(/^event: create\n.*\n.*?"identifier":"(\w+)"/gm)].map(([, name]) => name!)
    expect(got.length).toBeLessThan(60)
    expect(got).toEqual(names.slice(0, got.length))
    await using again = await listener(own, 'user', '', 'things', { 'last-event-id': ids[got.length]! })
    expect(await again.take(61 - got.length)).toEqual([...names.slice(got.length), 'end'].map((one) => `create ${one}`))
  })
})

describe('whoever may not listen any more', () => {
  const ends = async (heard: Follower) => expect(summarize(await heard.next())).toBe('end')

  test('is left: a token that was revoked, a session that ended', async () => {
    const own = await createThingsFixture(fields)
    const pair = await signInForTokens(own, 'user')
    const cookie = await signInForCookie(own, 'user')
    const by = (headers: Record<string, string>) => openStream(changes(), { tenant: own.id, ...headers })
    const heard = await Promise.all([by(bearer(pair.token)), by(cookie), by({ 'x-api-key': own.tokens.user })])
    for (const one of heard) expect((await one.next())?.event).toBe('ready')
    await own.stranger.with(bearer(pair.token)).post('/logout')
    await ends(heard[0]!)
    await own.stranger.with(cookie).post('/logout')
    await ends(heard[1]!)
    const session = await signInForTokens(own, 'user')
    const mine = own.stranger.with(bearer(session.token))
    for (const { _id } of (await mine.get('/me/api-tokens')).body) await mine.delete(`/me/api-tokens/${_id}`)
    await ends(heard[2]!)
  })

  test('is left when the access token expires', async () => {
    const own = await createThingsFixture(fields)
    const { token, expiresIn } = await signInForTokens(own, 'user')
    const heard = await openStream(changes(), { tenant: own.id, ...bearer(token) })
    await heard.next()
    advanceClock((expiresIn - 60) * SECOND)
    await own.as('admin').post(own.path, { identifier: 'a' })
    expect(await heard.take(1)).toEqual(['create a'])
    advanceClock(61 * SECOND)
    await ends(heard)
  })

  test('is left when their roles are not enough, and hears no more by then', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('tenant', 'plugin'))
    const heard = await listener(own, 'editor')
    await setRoles(own.tenant, 'editor', ['user'])
    await own.as('admin').post(own.path, { identifier: 'a' })
    await ends(heard)
  })

  test('is left when the rules or the field of their filter say so, or the tenant is suspended', async () => {
    const own = await createThingsFixture(fields)
    const [all, some] = [await listener(own, 'user'), await listener(own, 'user', '?n=1')]
    const admin = own.as('admin')
    const guarded = fields.map((field) => (field.key === 'n' ? { ...field, readRoles: ['plugin'] } : field))
    await admin.put('/blueprints/things', { fields: guarded })
    await ends(some)
    expect(await all.take(1)).toEqual(['reset'])
    await admin.post(own.path, { identifier: 'a', n: 1, title: 'x' })
    expect((await all.next())?.data.metadata).toEqual({ title: 'x' })
    await admin.put('/blueprints/things', { permissions: fullAccessRules('tenant', 'plugin') })
    await ends(all)
    const last = await listener(own, 'editor')
    await setStatus(own.id, 'suspended')
    await ends(last)
  })

  test('is left when the tenant is no more', async () => {
    const own = await createThingsFixture(fields)
    const heard = await listener(own, 'user')
    await deleteTenant(own.id)
    await ends(heard)
  })

  test('of entities that a change of their blueprint alters, is told to start again, and hears of the new ones', async () => {
    const own = await createThingsFixture(fields)
    const admin = own.as('admin')
    await admin.post(own.path, { identifier: 'a', title: 'Emma' })
    const heard = await listener(own, 'user')
    const [title, ...others] = fields
    const renamed = [{ ...title, key: 'name', renamedFrom: 'title' }, ...others]
    expect((await admin.put('/blueprints/things', { fields: renamed })).status).toBe(200)
    expect(await heard.take(1)).toEqual(['reset'])
    await admin.put(`${own.path}/a`, { n: 1 })
    const told = await heard.next()
    expect([told?.event, told?.data.name, told?.data.title]).toEqual(['update', 'Emma', undefined])
  })

  test('or may see less, is told to start again, and sees less from then on', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user'))
    const heard = await listener(own, 'user')
    const admin = own.as('admin')
    await admin.put('/blueprints/things', { permissions: fullAccessRules('user', 'user') })
    expect(await heard.take(1)).toEqual(['reset'])
    await admin.post(own.path, { identifier: 'hers' })
    await own.as('user').post(own.path, { identifier: 'mine' })
    expect(await heard.take(1)).toEqual(['create mine'])
    // What changes nothing for them interrupts nobody.
    await admin.put('/blueprints/things', { name: 'Other things' })
    await own.as('user').put(`${own.path}/mine`, { n: 1 })
    expect(await heard.take(1)).toEqual(['update mine'])
  })
})

describe('many who listen', () => {
  test('share what is read: one statement for each change, however many they are', async () => {
    const own = await createThingsFixture(fields)
    const heard = await Promise.all(
      Array.from({ length: 60 }, (_, n) => listener(own, 'user', n % 2 ? '?n[$gte]=0' : `?n=${n}`)),
    )
    const { db } = await resolveTenant(new Request(own.origin, { headers: { host: `${own.id}.test` } }))
    const asked = spyOn(db, 'query')
    await own.as('user').post(own.path, { identifier: 'a', n: 4 })
    for (const [n, one] of heard.entries()) if (n % 2 || n === 4) expect(await one.take(1)).toEqual(['create a'])
    expect(asked.mock.calls.filter(([sql]) => sql.includes('entity_changes')).length).toBe(1)
    asked.mockRestore()
  })

  test('each get all of it, in order, while it is written to by several', async () => {
    const own = await createThingsFixture(fields)
    const heard = await Promise.all(Array.from({ length: 90 }, () => listener(own, 'user', '?$select=n')))
    const more = await Promise.all(Array.from({ length: 90 }, () => listener(own, 'other', '?n[$lt]=50')))
    const writing = Promise.all(Array.from({ length: 100 }, (_, n) => own.as('user').post(own.path, { n })))
    const numbers = async (one: Follower, count: number) => {
      const found = []
      while (found.length < count) found.push((await one.next())?.data.n)
      return found
    }
    const told = await Promise.all(heard.map((one) => numbers(one, 100)))
    await writing
    for (const one of told) expect(one).toEqual(told[0]!)
    expect([...told[0]!].sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n))
    const low = told[0]!.filter((n) => n < 50)
    for (const one of more) expect(await numbers(one, 50)).toEqual(low)
  })
})

test('who listens where another process makes the changes hears of them, too', async () => {
  const own = await createThingsFixture(fields)
  await using heard = await listener(own, 'user')
  const time = new Date().toISOString()
  const system = { _id: 'x', identifier: 'far', created: time, updated: time, user: null, workspace: null }
  const shown = `${JSON.stringify(system).slice(1, -1)},"metadata":{}`
  // Nobody here is told of the commit, as if it had been another process's.
  const deaf = (tx: Tx): Tx => ({ ...tx, afterCommit: () => {} })
  await own.tenant.write((tx) => appendChanges(deaf(tx), 'things', [{ after: { shown, keys: '{}' } }]))
  expect(await heard.take(1)).toEqual(['create far'])
})
