import { afterEach, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { sessions } from '../../src/accounts/tables'
import { now } from '../../src/core/clock'
import { TIME, UNAUTHENTICATED } from '../expectations'
import { createTestTenant, statusAndCode } from '../test-tenant'
import {
  advanceClock,
  bearer,
  clearsSessionCookie,
  DAY,
  MINUTE,
  readSetCookie,
  resetClock,
  SECOND,
  signInForCookie,
  signInForTokens,
  type TokenPair,
} from './session-fixtures'

const home = await createTestTenant()
const { anonymous } = home

const refresh = (refreshToken: string) => anonymous.post('/token/refresh', { refreshToken })
const getStatus = async (headers: Record<string, string>) => (await anonymous.get('/me', headers)).status

afterEach(resetClock)

describe('refresh tokens', () => {
  test('POST /api/token/refresh exchanges a refresh token for a new pair of the same session', async () => {
    const first = await signInForTokens(home, 'user')
    const answer = await refresh(first.refreshToken)
    expect(answer.status).toBe(200)
    const { token, refreshToken, user } = answer.body.payload
    expect(answer.body).toEqual({ payload: { token, refreshToken, expiresIn: 900, user, workspace: null } })
    expect(user).toMatchObject({ _id: home.users.user, username: 'user' })
    expect(JSON.stringify(answer.body)).not.toMatch(/password|argon2|hash/)
    expect(answer.headers.get('set-cookie')).toBeNull()
    expect(refreshToken).not.toBe(first.refreshToken)
    expect(token).not.toBe(first.token)
    const sids = [first.token, token].map((one) => JSON.parse(atob(one.split('.')[1] ?? '')).sid)
    expect(sids[1]).toBe(sids[0])
    expect(await getStatus(bearer(token))).toBe(200)
  })

  test('POST /api/token/refresh accepts the refresh token as bearer token', async () => {
    const { refreshToken } = await signInForTokens(home, 'user')
    expect((await anonymous.post('/token/refresh', undefined, bearer(refreshToken))).status).toBe(200)
  })

  test('POST /api/token/refresh without a valid refresh token gets 401 UNAUTHENTICATED', async () => {
    const { token } = await signInForTokens(home, 'user')
    for (const refreshToken of [undefined, null, '', 'x', token, 'x'.repeat(10_000)])
      expect(statusAndCode(await anonymous.post('/token/refresh', { refreshToken }))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await anonymous.post('/token/refresh', undefined, bearer(token)))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await anonymous.post('/token/refresh', { refreshToken: 5 }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a used refresh token that is sent again after half a minute ends the session', async () => {
    const first = await signInForTokens(home, 'user')
    const second: TokenPair = (await refresh(first.refreshToken)).body.payload
    advanceClock(31 * SECOND)
    expect(await getStatus(bearer(second.token))).toBe(200)
    expect(statusAndCode(await refresh(first.refreshToken))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await refresh(second.refreshToken))).toEqual(UNAUTHENTICATED)
    expect(await getStatus(bearer(second.token))).toBe(401)
    expect(await getStatus(bearer(first.token))).toBe(401)
  })

  test('a used refresh token returns the same successor within half a minute, while the successor is unused', async () => {
    const first = await signInForTokens(home, 'user')
    const second: TokenPair = (await refresh(first.refreshToken)).body.payload
    advanceClock(10 * SECOND)
    for (let n = 0; n < 30; n++) {
      const { status, body } = await refresh(first.refreshToken)
      expect([status, body.payload.refreshToken]).toEqual([200, second.refreshToken])
      expect(await getStatus(bearer(body.payload.token))).toBe(200)
    }
    expect((await refresh(second.refreshToken)).status).toBe(200)
  })

  test('a thief who uses a refresh token within the same half minute is detected at the next refresh, which ends the session', async () => {
    const { refreshToken } = await signInForTokens(home, 'user')
    const [owner, thief]: TokenPair[] = [
      (await refresh(refreshToken)).body.payload,
      (await refresh(refreshToken)).body.payload,
    ]
    advanceClock(MINUTE)
    expect((await refresh(owner!.refreshToken)).status).toBe(200)
    advanceClock(MINUTE)
    expect(statusAndCode(await refresh(thief!.refreshToken))).toEqual(UNAUTHENTICATED)
    for (const { token } of [owner!, thief!]) expect(await getStatus(bearer(token))).toBe(401)
  })

  test('twenty simultaneous refreshes of one session return the same refresh token', async () => {
    const here = await createTestTenant()
    const { refreshToken } = await signInForTokens(here, 'user')
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => here.anonymous.post('/token/refresh', { refreshToken })),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(new Set(answers.map(({ body }) => body.payload.refreshToken)).size).toBe(1)
    const unspent = 'select count(*) from session_keys where spent is null'
    expect((await here.tenant.db.query(unspent)).map(([n]) => Number(n))).toEqual([1])
  })

  test('a used refresh token ends the session once its successor has been used', async () => {
    const first = await signInForTokens(home, 'user')
    const second: TokenPair = (await refresh(first.refreshToken)).body.payload
    const third: TokenPair = (await refresh(second.refreshToken)).body.payload
    expect(statusAndCode(await refresh(first.refreshToken))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await refresh(third.refreshToken))).toEqual(UNAUTHENTICATED)
    expect(await getStatus(bearer(third.token))).toBe(401)
  })

  test('the reuse of a stolen refresh token does not end other sessions of the user', async () => {
    const [stolen, otherSession] = [await signInForTokens(home, 'user'), await signInForTokens(home, 'user')]
    await refresh(stolen.refreshToken)
    advanceClock(31 * SECOND)
    await refresh(stolen.refreshToken)
    expect(await getStatus(bearer(otherSession.token))).toBe(200)
    expect((await refresh(otherSession.refreshToken)).status).toBe(200)
  })

  test('two simultaneous refreshes of one token both succeed', async () => {
    const { refreshToken } = await signInForTokens(home, 'user')
    const both = await Promise.all([refresh(refreshToken), refresh(refreshToken)])
    for (const { status, body } of both) {
      expect(status).toBe(200)
      expect(await getStatus(bearer(body.payload.token))).toBe(200)
    }
  })

  test('POST /api/token/refresh rejects access tokens, cookies and API tokens with 401 UNAUTHENTICATED', async () => {
    const { token } = await signInForTokens(home, 'user')
    const { cookie } = await signInForCookie(home, 'user')
    const value = cookie.split('=')[1] ?? ''
    for (const credential of ['x', token, value, home.tokens.user]) {
      expect(statusAndCode(await refresh(credential.slice(0, 200)))).toEqual(UNAUTHENTICATED)
      expect(statusAndCode(await anonymous.post('/token/refresh', undefined, bearer(credential)))).toEqual(
        UNAUTHENTICATED,
      )
    }
    expect(statusAndCode(await anonymous.post('/token/refresh'))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await anonymous.post('/token/refresh', {}))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await anonymous.post('/token/refresh', undefined, { cookie }))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await home.as('user').post('/token/refresh'))).toEqual(UNAUTHENTICATED)
  })

  test('a refresh token gets 401 at another tenant and stays valid at its own', async () => {
    const otherTenant = await createTestTenant()
    const { refreshToken } = await signInForTokens(home, 'user')
    expect(statusAndCode(await otherTenant.anonymous.post('/token/refresh', { refreshToken }))).toEqual(UNAUTHENTICATED)
    expect((await refresh(refreshToken)).status).toBe(200)
  })

  test('a session that is not refreshed for thirty days ends', async () => {
    const { refreshToken } = await signInForTokens(home, 'user')
    advanceClock(30 * DAY + SECOND)
    expect(statusAndCode(await refresh(refreshToken))).toEqual(UNAUTHENTICATED)
  })

  test('a refreshed session continues beyond its first thirty days', async () => {
    const first = await signInForTokens(home, 'user')
    expect(await getStatus(bearer(first.token))).toBe(200)
    advanceClock(29 * DAY)
    const second: TokenPair = (await refresh(first.refreshToken)).body.payload
    expect(await getStatus(bearer(second.token))).toBe(200)
    advanceClock(2 * DAY)
    const third: TokenPair = (await refresh(second.refreshToken)).body.payload
    expect(await getStatus(bearer(third.token))).toBe(200)
  })
})

describe('session cookies', () => {
  const renew = (headers: Record<string, string>) => anonymous.post('/cookie/refresh', undefined, headers)

  test('POST /api/cookie/refresh exchanges the cookie for another one of the same session', async () => {
    const old = await signInForCookie(home, 'user')
    const [before] = (await anonymous.get('/me/sessions', old)).body.filter(isCurrent)
    const answer = await renew(old)
    expect(answer.status).toBe(200)
    const { user } = answer.body.payload
    expect(answer.body).toEqual({ payload: { user, workspace: null } })
    expect(user._id).toBe(home.users.user)
    const { cookie, attributes } = readSetCookie(answer)
    expect(cookie).toMatch(new RegExp(`^atoll_${home.id}=[\\w-]{43}$`))
    expect(cookie).not.toBe(old.cookie)
    expect(attributes).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax'])
    const [after] = (await anonymous.get('/me/sessions', { cookie })).body.filter(isCurrent)
    expect(after._id).toBe(before._id)
  })

  test('a replaced cookie gets 401 after half a minute and is cleared', async () => {
    const old = await signInForCookie(home, 'user')
    const { cookie } = readSetCookie(await renew(old))
    advanceClock(31 * SECOND)
    const late = await anonymous.get('/me', old)
    expect(statusAndCode(late)).toEqual(UNAUTHENTICATED)
    expect(clearsSessionCookie(late, home)).toBe(true)
    expect(await getStatus({ cookie })).toBe(200)
  })

  test('a replaced cookie that is used within half a minute is neither renewed nor prolonged', async () => {
    const old = await signInForCookie(home, 'user')
    const { cookie } = readSetCookie(await renew(old))
    advanceClock(10 * SECOND)
    const overtaken = await anonymous.get('/me', old)
    expect(overtaken.status).toBe(200)
    expect(overtaken.headers.get('set-cookie')).toBeNull()
    advanceClock(21 * SECOND)
    expect(await getStatus(old)).toBe(401)
    expect(await getStatus({ cookie })).toBe(200)
  })

  test('two simultaneous renewals of one cookie return the same new cookie', async () => {
    const old = await signInForCookie(home, 'user')
    const both = await Promise.all([renew(old), renew(old)])
    const [first, second] = both.map((answer) => readSetCookie(answer).cookie)
    expect(first).toBe(second!)
    // A late renewal returns the newest cookie, not one that has been replaced.
    const newest = readSetCookie(await renew({ cookie: first! })).cookie
    expect(readSetCookie(await renew(old)).cookie).toBe(newest)
    advanceClock(31 * SECOND)
    expect(await getStatus({ cookie: newest })).toBe(200)
    expect(await getStatus({ cookie: first! })).toBe(401)
  })

  test('POST /api/cookie/refresh rejects access tokens and API tokens with 400 and refresh tokens with 401', async () => {
    const { token, refreshToken } = await signInForTokens(home, 'user')
    expect(statusAndCode(await renew(bearer(token)))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await renew({ 'x-api-key': home.tokens.user }))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await renew(bearer(refreshToken)))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await renew({}))).toEqual(UNAUTHENTICATED)
  })

  test('a cookie in use is set again at most once in thirty minutes', async () => {
    const mine = await signInForCookie(home, 'user')
    const renewed = async () => readSetCookie(await anonymous.get('/me', mine))
    expect((await renewed()).cookie).toBe('')
    advanceClock(29 * MINUTE)
    expect((await renewed()).cookie).toBe('')
    advanceClock(2 * MINUTE)
    const { cookie, attributes } = await renewed()
    expect(cookie).toBe(mine.cookie)
    expect(attributes).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax'])
    expect((await renewed()).cookie).toBe('')
    advanceClock(31 * MINUTE)
    expect((await renewed()).cookie).toBe(mine.cookie)
  })

  test('a cookie in use stays valid, and one that is unused for thirty days gets 401 and is cleared', async () => {
    const mine = await signInForCookie(home, 'user')
    for (let month = 0; month < 3; month++) {
      advanceClock(29 * DAY)
      expect(await getStatus(mine)).toBe(200)
    }
    advanceClock(30 * DAY + SECOND)
    const ended = await anonymous.get('/me', mine)
    expect(statusAndCode(ended)).toEqual(UNAUTHENTICATED)
    expect(clearsSessionCookie(ended, home)).toBe(true)
  })
})

describe('POST /api/logout', () => {
  const signOut = (headers: Record<string, string>) => anonymous.post('/logout', undefined, headers)

  test('POST /api/logout by cookie ends its session at once, and no other', async () => {
    const [mine, otherSession] = [await signInForCookie(home, 'user'), await signInForCookie(home, 'user')]
    expect(await getStatus(mine)).toBe(200)
    const answer = await signOut(mine)
    expect([answer.status, answer.body]).toEqual([200, { success: true }])
    expect(clearsSessionCookie(answer, home)).toBe(true)
    expect(await getStatus(mine)).toBe(401)
    expect(await getStatus(otherSession)).toBe(200)
  })

  test('POST /api/logout by access token ends its session with all tokens at once, and no other', async () => {
    const first = await signInForTokens(home, 'user')
    const second: TokenPair = (await refresh(first.refreshToken)).body.payload
    const otherSession = await signInForTokens(home, 'user')
    const answer = await signOut(bearer(second.token))
    expect([answer.status, answer.body]).toEqual([200, { success: true }])
    for (const { token } of [first, second]) expect(await getStatus(bearer(token))).toBe(401)
    expect(statusAndCode(await refresh(second.refreshToken))).toEqual(UNAUTHENTICATED)
    expect(await getStatus(bearer(otherSession.token))).toBe(200)
  })

  test('POST /api/logout by API token keeps the API token valid', async () => {
    expect((await signOut({ 'x-api-key': home.tokens.user })).status).toBe(200)
    expect((await home.as('user').get('/me')).status).toBe(200)
  })

  test('POST /api/logout without a credential gets 401 UNAUTHENTICATED', async () => {
    expect(statusAndCode(await signOut({}))).toEqual(UNAUTHENTICATED)
  })
})

const isCurrent = (session: { current: boolean }) => session.current

describe('/api/me/sessions', () => {
  test('GET /api/me/sessions lists the sessions of the caller with browser, address and times, but without keys', async () => {
    const here = await createTestTenant()
    const pair = await signInForTokens(here, 'user')
    await signInForCookie(here, 'other')
    const mine = await signInForCookie(here, 'user')
    const { status, body } = await here.anonymous.get('/me/sessions', mine)
    expect(status).toBe(200)
    const common = { _id: expect.any(String), userAgent: 'a browser', address: '192.0.2.1' }
    const times = { created: TIME, used: TIME, expires: TIME }
    expect(body).toHaveLength(2)
    expect(body).toContainEqual({ ...common, ...times, kind: 'cookie', current: true })
    expect(body).toContainEqual({ ...common, ...times, kind: 'oauth', current: false })
    const text = JSON.stringify(body)
    for (const key of [pair.refreshToken, pair.token, mine.cookie.split('=')[1] ?? '']) expect(text).not.toContain(key)
  })

  test('GET /api/me/sessions shows the user agent of the sign-in', async () => {
    const answer = await anonymous.post(
      '/signup',
      { username: 'ada', password: 'correct horse' },
      { 'user-agent': 'Lynx' },
    )
    const [session] = (await anonymous.get('/me/sessions', { cookie: readSetCookie(answer).cookie })).body
    expect(session.userAgent).toBe('Lynx')
  })

  test('GET /api/me/sessions omits expired sessions', async () => {
    const here = await createTestTenant()
    await signInForCookie(here, 'user')
    const me = here.as('user')
    expect((await me.get('/me/sessions')).body).toHaveLength(1)
    advanceClock(30 * DAY + SECOND)
    expect((await me.get('/me/sessions')).body).toEqual([])
  })

  test('a sign-in of a user with 1,000 sessions ends the one that was not used for the longest time', async () => {
    const own = await createTestTenant()
    const { tenant, users, anonymous } = own
    const [oldest, next] = [await signInForCookie(own, 'user'), await signInForCookie(own, 'user')]
    const others = await signInForCookie(own, 'other')
    expect((await anonymous.get('/me', oldest)).status).toBe(200)
    advanceClock(SECOND)
    const [time, expires] = [now(), now() + DAY]
    await tenant.write((tx) =>
      tx.executeMany(
        `insert into sessions (_id, "user", kind, user_agent, address, created, used, expires)
         values (?, ?, 'oauth', '', '', ?, ?, ?)`,
        Array.from({ length: 998 }, () => [Bun.randomUUIDv7(), users.user, time, time, expires]),
      ),
    )
    const newest = await signInForCookie(own, 'user')
    const statuses = [oldest, next, newest, others].map(async (session) => (await anonymous.get('/me', session)).status)
    expect(await Promise.all(statuses)).toEqual([401, 200, 200, 200])
    expect(await tenant.db.$count(sessions, eq(sessions.user, users.user))).toBe(1_000)
  })

  test('DELETE /api/me/sessions/:id ends a session at once', async () => {
    const [mine, phone, tablet] = [
      await signInForCookie(home, 'editor'),
      await signInForCookie(home, 'editor'),
      await signInForTokens(home, 'editor'),
    ]
    const idOf = async (headers: Record<string, string>) =>
      (await anonymous.get('/me/sessions', headers)).body.find(isCurrent)._id
    for (const lost of [await idOf(phone), await idOf(bearer(tablet.token))]) {
      const answer = await anonymous.delete(`/me/sessions/${lost}`, mine)
      expect([answer.status, answer.body]).toEqual([200, { success: true }])
    }
    expect(await getStatus(phone)).toBe(401)
    expect(await getStatus(bearer(tablet.token))).toBe(401)
    expect(statusAndCode(await refresh(tablet.refreshToken))).toEqual(UNAUTHENTICATED)
    expect(await getStatus(mine)).toBe(200)
    expect((await anonymous.get('/me/sessions', mine)).body).toHaveLength(1)
    const own = await idOf(mine)
    expect((await anonymous.delete(`/me/sessions/${own}`, mine)).status).toBe(200)
    expect(await getStatus(mine)).toBe(401)
  })

  test('a session is hidden from other users, admins and tenants, whose DELETE gets 404 SESSION_NOT_FOUND', async () => {
    const otherTenant = await createTestTenant()
    const mine = await signInForCookie(home, 'user')
    const { _id } = (await anonymous.get('/me/sessions', mine)).body.find(isCurrent)
    for (const client of [home.as('other'), home.as('admin'), otherTenant.as('user')]) {
      expect(JSON.stringify((await client.get('/me/sessions')).body)).not.toContain(_id)
      expect(statusAndCode(await client.delete(`/me/sessions/${_id}`))).toEqual([404, 'SESSION_NOT_FOUND'])
    }
    expect(await getStatus(mine)).toBe(200)
  })

  test('anonymous requests to /api/me/sessions get 401, and an API token with a read scope gets 403 for DELETE', async () => {
    expect(statusAndCode(await anonymous.get('/me/sessions'))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await anonymous.delete('/me/sessions/x'))).toEqual(UNAUTHENTICATED)
    const mine = await signInForCookie(home, 'user')
    const { token } = (await anonymous.post('/me/api-tokens', { nickname: 'reader', scopes: ['accounts:read'] }, mine))
      .body
    const reader = anonymous.with({ 'x-api-key': token })
    expect((await reader.get('/me/sessions')).status).toBe(200)
    expect(statusAndCode(await reader.delete('/me/sessions/x'))).toEqual([403, 'FORBIDDEN'])
  })

  test.each([
    ['a null character', '%00'],
    ['a word', 'x'],
    ['unknown', '00000000-0000-7000-8000-000000000000'],
    ['a quote', "'"],
    ['an invalid escape sequence', '%zz'],
    ['two hundred characters long', 'x'.repeat(200)],
  ])('DELETE /api/me/sessions/:id gets 404 SESSION_NOT_FOUND where the ID is %s', async (_, id) => {
    expect(statusAndCode(await home.as('user').delete(`/me/sessions/${id}`))).toEqual([404, 'SESSION_NOT_FOUND'])
  })
})
