import { afterEach, describe, expect, test } from 'bun:test'
import { reauthorize } from '../../src/accounts/guard'
import { hashPassword } from '../../src/accounts/passwords'
import { sessionKeys, users } from '../../src/accounts/tables'
import { config } from '../../src/config'
import { now, toIsoString } from '../../src/core/clock'
import { sha256 } from '../../src/core/crypto'
import { StorageFull } from '../../src/storage/errors'
import { startHttpUpstream } from '../fakes/http-upstream'
import { apiClient, createTestTenant, statusAndCode, type TestUser } from '../test-tenant'
import { advanceClock, MINUTE, readSetCookie, resetClock, SECOND, signInForCookie } from './session-fixtures'

const REPLAYED_HEADER = 'idempotency-replayed'
const home = await createTestTenant()

afterEach(resetClock)

/** Signs a user in by a cookie that is to be renewed by the next request. */
async function signInWithOldCookie(name: TestUser = 'user') {
  const session = await signInForCookie(home, name)
  advanceClock(31 * MINUTE)
  return { ...session, client: apiClient(home.origin, session) }
}

describe('the renewal of a session cookie', () => {
  test('a replayed response renews the cookie of the request, and never contains the cookie of the first request', async () => {
    const key = { 'idempotency-key': crypto.randomUUID() }
    const { cookie, client } = await signInWithOldCookie()
    const first = await client.post('/me', { firstName: 'Ada' }, key)
    expect([readSetCookie(first).cookie, first.headers.get(REPLAYED_HEADER)]).toEqual([cookie, null])
    const second = await signInForCookie(home, 'user')
    const again = await home.anonymous.post('/me', { firstName: 'Ada' }, { ...second, ...key })
    expect([again.headers.get(REPLAYED_HEADER), again.headers.getSetCookie()]).toEqual(['true', []])
    advanceClock(31 * MINUTE)
    const late = await home.anonymous.post('/me', { firstName: 'Ada' }, { ...second, ...key })
    expect([late.headers.get(REPLAYED_HEADER), readSetCookie(late).cookie]).toEqual(['true', second.cookie])
    expect(late.headers.getSetCookie()).toHaveLength(1)
  })

  test('a response of a plugin renews the cookie, beside the cookies that the plugin sets', async () => {
    config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
    const upstream = await startHttpUpstream({
      '/base/page': (_, response) => response.writeHead(200, { 'set-cookie': 'theme=dark' }).end('page'),
    })
    try {
      const plugin = { name: 'pages', apiPath: 'pages', proxyUrl: `${upstream.url}/base`, subscribedEvents: [] }
      expect((await home.as('admin').post('/plugins', plugin)).body.message).toBeUndefined()
      const { cookie, client } = await signInWithOldCookie()
      const { status, headers } = await client.get('/pages/page')
      expect([status, headers.getSetCookie().map((line) => line.split(';')[0])]).toEqual([200, ['theme=dark', cookie]])
    } finally {
      config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
      await upstream.stop()
    }
  })

  test('the start of an identity link renews the session cookie beside its own cookie', async () => {
    const providers = { google: { clientId: 'x', clientSecret: 'y' } }
    await home.as('admin').put('/configurations/auth-configuration', { metadata: { providers } })
    const password = await hashPassword({ tenant: home.id, caller: 'user' }, 'correct horse')
    await home.tenant.write((tx) => tx.update(users).set({ password }))
    const { cookie, client } = await signInWithOldCookie('other')
    const { status, headers } = await client.post('/me/identities', {
      ...{ provider: 'google', currentPassword: 'correct horse' },
    })
    expect([status, headers.getSetCookie().map((line) => line.split('=')[0])]).toEqual([
      200,
      [`atoll_${home.id}_auth`, `atoll_${home.id}`],
    ])
    expect(headers.getSetCookie()[1]).toStartWith(cookie)
  })

  test('a logout and a renewal on request set the session cookie once', async () => {
    const { client } = await signInWithOldCookie()
    const renewed = await client.post('/cookie/refresh')
    expect(renewed.headers.getSetCookie()).toHaveLength(1)
    const loggedOut = await (await signInWithOldCookie()).client.post('/logout')
    expect([loggedOut.headers.getSetCookie().length, readSetCookie(loggedOut).cookie]).toEqual([1, `atoll_${home.id}=`])
  })

  test('a long response that authorizes its caller again leaves the renewal to the next request', async () => {
    const { cookie, client } = await signInWithOldCookie()
    const stream = new Request(`${home.origin}/api/me`, { headers: { host: new URL(home.origin).host, cookie } })
    expect((await reauthorize(stream, 'entities')).actor?.user).toBe(home.users.user)
    expect(readSetCookie(await client.get('/me')).cookie).toBe(cookie)
  })

  test('a cookie that another server has replaced is not prolonged', async () => {
    const session = await signInForCookie(home, 'user')
    expect((await home.anonymous.get('/me', session)).status).toBe(200)
    advanceClock(31 * MINUTE)
    const expires = toIsoString(now() + 30 * SECOND)
    const isKey = sha256(session.cookie.split('=')[1]!)
    const replaced = home.tenant.db.select().from(sessionKeys)
    // The cache of this server still has the cookie as it was.
    await home.tenant.write((tx) => tx.update(sessionKeys).set({ spent: toIsoString(now()), expires }))
    const answer = await home.anonymous.get('/me', session)
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([200, []])
    expect((await replaced).find(({ hash }) => hash === isKey)).toMatchObject({ expires })
  })

  test('a request reads although its cookie cannot be renewed, and the next one renews it', async () => {
    const { cookie, client } = await signInWithOldCookie()
    const tenant = home.tenant as { write: typeof home.tenant.write }
    const { write } = tenant
    tenant.write = () => Promise.reject(new StorageFull())
    const read = await client.get('/me').finally(() => {
      tenant.write = write
    })
    expect([read.status, read.headers.getSetCookie()]).toEqual([200, []])
    expect(readSetCookie(await client.get('/me')).cookie).toBe(cookie)
  })
})

describe('POST /api/cookie/refresh', () => {
  test('a renewal of a session that has ended meanwhile gets 401 UNAUTHENTICATED', async () => {
    const session = await signInForCookie(home, 'user')
    expect((await home.anonymous.get('/me', session)).status).toBe(200)
    // The cache still has the session, as while another request ends it.
    await home.tenant.write((tx) => tx.delete(sessionKeys))
    expect(statusAndCode(await home.anonymous.post('/cookie/refresh', undefined, session))).toEqual([
      401,
      'UNAUTHENTICATED',
    ])
  })
})
