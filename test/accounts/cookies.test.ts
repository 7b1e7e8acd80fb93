import { afterEach, describe, expect, test } from 'bun:test'
import { createSession } from '../../src/accounts/sessions'
import { config } from '../../src/config'
import { setHosts } from '../../src/tenancy/tenants'
import { apiClient, createTestTenant, statusAndCode } from '../test-tenant'
import { readSetCookie, signInForCookie } from './session-fixtures'

const COOKIE_OF_ANOTHER_HOST = [403, 'COOKIE_OF_ANOTHER_HOST']
const password = 'correct horse'
const device = { userAgent: 'a browser', address: '192.0.2.1' }

afterEach(() => {
  config.ATOLL_TENANT_HEADER = 'on'
})

describe('session cookies', () => {
  test('a session cookie gets 403 COOKIE_OF_ANOTHER_HOST at the host of another tenant despite the tenant header', async () => {
    const [ours, theirs] = [await createTestTenant(), await createTestTenant()]
    const { cookie } = await signInForCookie(ours, 'admin')
    const page = apiClient(theirs.origin, { cookie, tenant: ours.id })
    expect(statusAndCode(await page.get('/users'))).toEqual(COOKIE_OF_ANOTHER_HOST)
    const person = { username: 'eve', password, roles: ['admin'] }
    expect(statusAndCode(await page.post('/users', person, { origin: theirs.origin }))).toEqual(COOKIE_OF_ANOTHER_HOST)
    expect(statusAndCode(await page.post('/users', person, { 'idempotency-key': 'k' }))).toEqual(COOKIE_OF_ANOTHER_HOST)
    expect(statusAndCode(await page.post('/cookie/refresh'))).toEqual(COOKIE_OF_ANOTHER_HOST)
    expect((await page.get('/users')).headers.get('set-cookie')).toBeNull()
    // Browsers do not send tokens by themselves, so tokens are accepted at every host.
    const token = apiClient(theirs.origin, { 'x-api-key': ours.tokens.admin, tenant: ours.id })
    expect((await token.get('/users')).status).toBe(200)
    expect((await ours.anonymous.get('/users', { cookie })).status).toBe(200)
  })

  test('an idempotent repetition at the host of another tenant gets 403 COOKIE_OF_ANOTHER_HOST, not the stored response', async () => {
    const [ours, theirs] = [await createTestTenant(), await createTestTenant()]
    const mine = { ...(await signInForCookie(ours, 'admin')), 'idempotency-key': 'k' }
    const person = { username: 'grace', password: 'a secret of hers' }
    expect((await ours.anonymous.post('/users', person, mine)).status).toBe(201)
    const there = await apiClient(theirs.origin, { ...mine, tenant: ours.id }).post('/users', person)
    expect([...statusAndCode(there), there.headers.get('idempotency-replayed')]).toEqual([
      ...COOKIE_OF_ANOTHER_HOST,
      null,
    ])
  })

  test('a session cookie is accepted at its own host and, with the tenant header, at unassigned hosts and on localhost', async () => {
    const [ours, theirs] = [await createTestTenant(), await createTestTenant()]
    await setHosts(theirs.id, [`${theirs.id}.localhost`])
    const { cookie } = await signInForCookie(ours, 'user')
    const named = { cookie, tenant: ours.id }
    for (const origin of [ours.origin, 'http://nobody.test', 'http://127.0.0.1:3000', 'http://[::1]:3000'])
      expect((await apiClient(origin, named).get('/me')).status, origin).toBe(200)
    for (const origin of ['http://localhost:5173', `http://${theirs.id}.localhost`])
      expect((await apiClient(origin, named).get('/me')).status, origin).toBe(200)
    expect((await apiClient(ours.origin, { cookie }).get('/me')).status).toBe(200)
  })

  test('a session cookie belongs to the tenant of the host where ATOLL_TENANT_HEADER is off', async () => {
    const [ours, theirs] = [await createTestTenant(), await createTestTenant()]
    config.ATOLL_TENANT_HEADER = 'off'
    const { cookie } = await signInForCookie(ours, 'user')
    expect((await apiClient(ours.origin, { cookie, tenant: theirs.id }).get('/me')).body.username).toBe('user')
    expect(statusAndCode(await apiClient(theirs.origin, { cookie, tenant: ours.id }).get('/me'))).toEqual([
      401,
      'UNAUTHENTICATED',
    ])
  })

  test('a request with several session cookies of the same name gets 401 UNAUTHENTICATED', async () => {
    const home = await createTestTenant()
    const [mine, planted] = [
      (await signInForCookie(home, 'user')).cookie,
      (await signInForCookie(home, 'other')).cookie,
    ]
    for (const cookie of [`${planted}; ${mine}`, `${mine}; ${planted}`, `${mine}; a=b; ${mine}`, `${mine};${mine}`])
      expect(statusAndCode(await home.anonymous.get('/me', { cookie })), cookie).toEqual([401, 'UNAUTHENTICATED'])
    expect((await home.anonymous.get('/me', { cookie: `a=b; ${mine}; a=c` })).body.username).toBe('user')
  })
})

describe('session cookies over TLS', () => {
  test('a session cookie over TLS has the prefix __Host-, and one without the prefix is ignored', async () => {
    const home = await createTestTenant()
    const tlsClient = apiClient(home.origin.replace('http:', 'https:'))
    const signedUp = await tlsClient.post('/signup', { username: 'ada', password })
    const { cookie, attributes } = readSetCookie(signedUp)
    expect(cookie).toMatch(new RegExp(`^__Host-atoll_${home.id}=[\\w-]{43}$`))
    expect(attributes).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax', 'Secure'])
    expect((await tlsClient.get('/me', { cookie })).body.username).toBe('ada')
    const { key } = await createSession(home.tenant, home.users.user, 'cookie', device)
    const planted = `atoll_${home.id}=${key}`
    expect(statusAndCode(await tlsClient.get('/me', { cookie: planted }))).toEqual([401, 'UNAUTHENTICATED'])
    expect((await tlsClient.get('/me', { cookie: `${planted}; ${cookie}` })).body.username).toBe('ada')
    const renewed = readSetCookie(await tlsClient.post('/cookie/refresh', undefined, { cookie }))
    expect(renewed.cookie).toStartWith(`__Host-atoll_${home.id}=`)
    const loggedOut = readSetCookie(await tlsClient.post('/logout', undefined, { cookie: renewed.cookie }))
    expect([loggedOut.cookie, loggedOut.attributes.includes('Max-Age=0')]).toEqual([`__Host-atoll_${home.id}=`, true])
    // A __Host- cookie is not accepted without TLS.
    expect(statusAndCode(await home.anonymous.get('/me', { cookie }))).toEqual([401, 'UNAUTHENTICATED'])
  })
})
