import { afterEach, describe, expect, test } from 'bun:test'
import { begin } from '../../src/accounts/sessions'
import { config } from '../../src/config'
import { setHosts } from '../../src/tenancy/tenants'
import { client, house, refusal } from '../house'
import { cookieOf, given } from './people'

const ELSEWHERE = [403, 'COOKIE_OF_ANOTHER_HOST']
const password = 'correct horse'
const device = { userAgent: 'a browser', address: '192.0.2.1' }

afterEach(() => {
  config.ATOLL_TENANT_HEADER = 'on'
})

describe('a session cookie', () => {
  test('is refused at the host of another tenant, whose page names ours in the header', async () => {
    const [ours, theirs] = [await house(), await house()]
    const { cookie } = await cookieOf(ours, 'admin')
    const page = client(theirs.origin, { cookie, tenant: ours.id })
    expect(refusal(await page.get('/users'))).toEqual(ELSEWHERE)
    const person = { username: 'eve', password, roles: ['admin'] }
    expect(refusal(await page.post('/users', person, { origin: theirs.origin }))).toEqual(ELSEWHERE)
    expect(refusal(await page.post('/users', person, { 'idempotency-key': 'k' }))).toEqual(ELSEWHERE)
    expect(refusal(await page.post('/cookie/refresh'))).toEqual(ELSEWHERE)
    expect((await page.get('/users')).headers.get('set-cookie')).toBeNull()
    // Tokens, which no browser sends by itself, count wherever they are sent.
    const token = client(theirs.origin, { 'x-api-key': ours.tokens.admin, tenant: ours.id })
    expect((await token.get('/users')).status).toBe(200)
    expect((await ours.stranger.get('/users', { cookie })).status).toBe(200)
  })

  test('does not get the kept answer of an earlier request there either', async () => {
    const [ours, theirs] = [await house(), await house()]
    const mine = { ...(await cookieOf(ours, 'admin')), 'idempotency-key': 'k' }
    const person = { username: 'grace', password: 'a secret of hers' }
    expect((await ours.stranger.post('/users', person, mine)).status).toBe(201)
    const there = await client(theirs.origin, { ...mine, tenant: ours.id }).post('/users', person)
    expect([...refusal(there), there.headers.get('idempotency-replayed')]).toEqual([...ELSEWHERE, null])
  })

  test('counts at its own host, at hosts of nobody, and on the caller’s own machine, with the header or without', async () => {
    const [ours, theirs] = [await house(), await house()]
    await setHosts(theirs.id, [`${theirs.id}.localhost`])
    const { cookie } = await cookieOf(ours, 'user')
    const named = { cookie, tenant: ours.id }
    for (const origin of [ours.origin, 'http://nobody.test', 'http://127.0.0.1:3000', 'http://[::1]:3000'])
      expect((await client(origin, named).get('/me')).status, origin).toBe(200)
    for (const origin of ['http://localhost:5173', `http://${theirs.id}.localhost`])
      expect((await client(origin, named).get('/me')).status, origin).toBe(200)
    expect((await client(ours.origin, { cookie }).get('/me')).status).toBe(200)
  })

  test('is that of the host where headers name no tenant', async () => {
    const [ours, theirs] = [await house(), await house()]
    config.ATOLL_TENANT_HEADER = 'off'
    const { cookie } = await cookieOf(ours, 'user')
    expect((await client(ours.origin, { cookie, tenant: theirs.id }).get('/me')).body.username).toBe('user')
    expect(refusal(await client(theirs.origin, { cookie, tenant: ours.id }).get('/me'))).toEqual([
      401,
      'UNAUTHENTICATED',
    ])
  })

  test('counts for nothing when several of its name come, in whatever order', async () => {
    const home = await house()
    const [mine, tossed] = [(await cookieOf(home, 'user')).cookie, (await cookieOf(home, 'other')).cookie]
    for (const cookie of [`${tossed}; ${mine}`, `${mine}; ${tossed}`, `${mine}; a=b; ${mine}`, `${mine};${mine}`])
      expect(refusal(await home.stranger.get('/me', { cookie })), cookie).toEqual([401, 'UNAUTHENTICATED'])
    expect((await home.stranger.get('/me', { cookie: `a=b; ${mine}; a=c` })).body.username).toBe('user')
  })
})

describe('by TLS', () => {
  test('a session cookie has the prefix __Host-, and no other name counts', async () => {
    const home = await house()
    const safe = client(home.origin.replace('http:', 'https:'))
    const signedUp = await safe.post('/signup', { username: 'ada', password })
    const { cookie, attributes } = given(signedUp)
    expect(cookie).toMatch(new RegExp(`^__Host-atoll_${home.id}=[\\w-]{43}$`))
    expect(attributes).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax', 'Secure'])
    expect((await safe.get('/me', { cookie })).body.username).toBe('ada')
    const { key } = await begin(home.tenant, home.users.user, 'cookie', device)
    const tossed = `atoll_${home.id}=${key}`
    expect(refusal(await safe.get('/me', { cookie: tossed }))).toEqual([401, 'UNAUTHENTICATED'])
    expect((await safe.get('/me', { cookie: `${tossed}; ${cookie}` })).body.username).toBe('ada')
    const renewed = given(await safe.post('/cookie/refresh', undefined, { cookie }))
    expect(renewed.cookie).toStartWith(`__Host-atoll_${home.id}=`)
    const left = given(await safe.post('/logout', undefined, { cookie: renewed.cookie }))
    expect([left.cookie, left.attributes.includes('Max-Age=0')]).toEqual([`__Host-atoll_${home.id}=`, true])
    // What was given by TLS is not sent without it.
    expect(refusal(await home.stranger.get('/me', { cookie }))).toEqual([401, 'UNAUTHENTICATED'])
  })
})
