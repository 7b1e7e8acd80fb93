import { afterEach, describe, expect, test } from 'bun:test'
import { house, refusal } from '../house'
import { backToNow, bearer, clears, cookieOf, DAY, given, later, MINUTE, type Pair, pairOf, SECOND } from './people'

const home = await house()
const { stranger } = home

const refresh = (refreshToken: string) => stranger.post('/token/refresh', { refreshToken })
const statusOf = async (headers: Record<string, string>) => (await stranger.get('/me', headers)).status
const UNKNOWN = [401, 'UNAUTHENTICATED']

afterEach(backToNow)

describe('tokens', () => {
  test('a refresh token is exchanged for a new pair of the same session', async () => {
    const first = await pairOf(home, 'user')
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
    expect(await statusOf(bearer(token))).toBe(200)
  })

  test('a refresh token may come as bearer token', async () => {
    const { refreshToken } = await pairOf(home, 'user')
    expect((await stranger.post('/token/refresh', undefined, bearer(refreshToken))).status).toBe(200)
  })

  test('who sends no refresh token, or what is none, is unknown', async () => {
    const { token } = await pairOf(home, 'user')
    for (const refreshToken of [undefined, null, '', 'x', token, 'x'.repeat(10_000)])
      expect(refusal(await stranger.post('/token/refresh', { refreshToken }))).toEqual(UNKNOWN)
    expect(refusal(await stranger.post('/token/refresh', undefined, bearer(token)))).toEqual(UNKNOWN)
    expect(refusal(await stranger.post('/token/refresh', { refreshToken: 5 }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a spent refresh token that turns up again ends the session for the thief and for the owner', async () => {
    const first = await pairOf(home, 'user')
    const second: Pair = (await refresh(first.refreshToken)).body.payload
    later(31 * SECOND)
    expect(await statusOf(bearer(second.token))).toBe(200)
    expect(refusal(await refresh(first.refreshToken))).toEqual(UNKNOWN)
    expect(refusal(await refresh(second.refreshToken))).toEqual(UNKNOWN)
    expect(await statusOf(bearer(second.token))).toBe(401)
    expect(await statusOf(bearer(first.token))).toBe(401)
  })

  test('within half a minute, while its successor is unused, a spent one answers the same successor', async () => {
    const first = await pairOf(home, 'user')
    const second: Pair = (await refresh(first.refreshToken)).body.payload
    later(10 * SECOND)
    for (let n = 0; n < 30; n++) {
      const { status, body } = await refresh(first.refreshToken)
      expect([status, body.payload.refreshToken]).toEqual([200, second.refreshToken])
      expect(await statusOf(bearer(body.payload.token))).toBe(200)
    }
    expect((await refresh(second.refreshToken)).status).toBe(200)
  })

  test('a thief who exchanges a token in the same half minute is noticed when both go on', async () => {
    const { refreshToken } = await pairOf(home, 'user')
    const [owner, thief]: Pair[] = [
      (await refresh(refreshToken)).body.payload,
      (await refresh(refreshToken)).body.payload,
    ]
    later(MINUTE)
    expect((await refresh(owner!.refreshToken)).status).toBe(200)
    later(MINUTE)
    expect(refusal(await refresh(thief!.refreshToken))).toEqual(UNKNOWN)
    for (const { token } of [owner!, thief!]) expect(await statusOf(bearer(token))).toBe(401)
  })

  test('a session has one chain of refresh tokens, however many ask at once', async () => {
    const here = await house()
    const { refreshToken } = await pairOf(here, 'user')
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => here.stranger.post('/token/refresh', { refreshToken })),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(new Set(answers.map(({ body }) => body.payload.refreshToken)).size).toBe(1)
    const unspent = 'select count(*) from session_keys where spent is null'
    expect((await here.tenant.db.ask(unspent)).map(([n]) => Number(n))).toEqual([1])
  })

  test('once its successor is used, a spent one ends the session at any time', async () => {
    const first = await pairOf(home, 'user')
    const second: Pair = (await refresh(first.refreshToken)).body.payload
    const third: Pair = (await refresh(second.refreshToken)).body.payload
    expect(refusal(await refresh(first.refreshToken))).toEqual(UNKNOWN)
    expect(refusal(await refresh(third.refreshToken))).toEqual(UNKNOWN)
    expect(await statusOf(bearer(third.token))).toBe(401)
  })

  test('the theft of one session does not end the others', async () => {
    const [stolen, other] = [await pairOf(home, 'user'), await pairOf(home, 'user')]
    await refresh(stolen.refreshToken)
    later(31 * SECOND)
    await refresh(stolen.refreshToken)
    expect(await statusOf(bearer(other.token))).toBe(200)
    expect((await refresh(other.refreshToken)).status).toBe(200)
  })

  test('two tabs that refresh in the same moment both go on', async () => {
    const { refreshToken } = await pairOf(home, 'user')
    const both = await Promise.all([refresh(refreshToken), refresh(refreshToken)])
    for (const { status, body } of both) {
      expect(status).toBe(200)
      expect(await statusOf(bearer(body.payload.token))).toBe(200)
    }
  })

  test('nothing but a refresh token is exchanged', async () => {
    const { token } = await pairOf(home, 'user')
    const { cookie } = await cookieOf(home, 'user')
    const value = cookie.split('=')[1] ?? ''
    for (const other of ['x', token, value, home.tokens.user]) {
      expect(refusal(await refresh(other.slice(0, 200)))).toEqual(UNKNOWN)
      expect(refusal(await stranger.post('/token/refresh', undefined, bearer(other)))).toEqual(UNKNOWN)
    }
    expect(refusal(await stranger.post('/token/refresh'))).toEqual(UNKNOWN)
    expect(refusal(await stranger.post('/token/refresh', {}))).toEqual(UNKNOWN)
    expect(refusal(await stranger.post('/token/refresh', undefined, { cookie }))).toEqual(UNKNOWN)
    expect(refusal(await home.as('user').post('/token/refresh'))).toEqual(UNKNOWN)
  })

  test('another tenant does not know a refresh token, and does not spend it', async () => {
    const abroad = await house()
    const { refreshToken } = await pairOf(home, 'user')
    expect(refusal(await abroad.stranger.post('/token/refresh', { refreshToken }))).toEqual(UNKNOWN)
    expect((await refresh(refreshToken)).status).toBe(200)
  })

  test('a session that nobody refreshes for thirty days ends', async () => {
    const { refreshToken } = await pairOf(home, 'user')
    later(30 * DAY + SECOND)
    expect(refusal(await refresh(refreshToken))).toEqual(UNKNOWN)
  })

  test('a session that is refreshed goes on beyond its first thirty days', async () => {
    const first = await pairOf(home, 'user')
    expect(await statusOf(bearer(first.token))).toBe(200)
    later(29 * DAY)
    const second: Pair = (await refresh(first.refreshToken)).body.payload
    expect(await statusOf(bearer(second.token))).toBe(200)
    later(2 * DAY)
    const third: Pair = (await refresh(second.refreshToken)).body.payload
    expect(await statusOf(bearer(third.token))).toBe(200)
  })
})

describe('cookies', () => {
  const renew = (headers: Record<string, string>) => stranger.post('/cookie/refresh', undefined, headers)

  test('a cookie is exchanged for another of the same session', async () => {
    const old = await cookieOf(home, 'user')
    const [before] = (await stranger.get('/me/sessions', old)).body.filter(current)
    const answer = await renew(old)
    expect(answer.status).toBe(200)
    const { user } = answer.body.payload
    expect(answer.body).toEqual({ payload: { user, workspace: null } })
    expect(user._id).toBe(home.users.user)
    const { cookie, attributes } = given(answer)
    expect(cookie).toMatch(new RegExp(`^atoll_${home.id}=[\\w-]{43}$`))
    expect(cookie).not.toBe(old.cookie)
    expect(attributes).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax'])
    const [after] = (await stranger.get('/me/sessions', { cookie })).body.filter(current)
    expect(after._id).toBe(before._id)
  })

  test('the old cookie is good for half a minute more, for requests that carry it already', async () => {
    const old = await cookieOf(home, 'user')
    const { cookie } = given(await renew(old))
    later(31 * SECOND)
    const late = await stranger.get('/me', old)
    expect(refusal(late)).toEqual(UNKNOWN)
    expect(clears(late, home)).toBe(true)
    expect(await statusOf({ cookie })).toBe(200)
  })

  test('using the old cookie in that half minute neither prolongs its life nor brings it back', async () => {
    const old = await cookieOf(home, 'user')
    const { cookie } = given(await renew(old))
    later(10 * SECOND)
    const overtaken = await stranger.get('/me', old)
    expect(overtaken.status).toBe(200)
    expect(overtaken.headers.get('set-cookie')).toBeNull()
    later(21 * SECOND)
    expect(await statusOf(old)).toBe(401)
    expect(await statusOf({ cookie })).toBe(200)
  })

  test('two tabs that renew the same cookie in the same moment get the same new one', async () => {
    const old = await cookieOf(home, 'user')
    const both = await Promise.all([renew(old), renew(old)])
    const [one, other] = both.map((answer) => given(answer).cookie)
    expect(one).toBe(other!)
    // Whoever comes last is not thrown back to one that has been replaced.
    const newest = given(await renew({ cookie: one! })).cookie
    expect(given(await renew(old)).cookie).toBe(newest)
    later(31 * SECOND)
    expect(await statusOf({ cookie: newest })).toBe(200)
    expect(await statusOf({ cookie: one! })).toBe(401)
  })

  test('only a cookie is refreshed as a cookie', async () => {
    const { token, refreshToken } = await pairOf(home, 'user')
    expect(refusal(await renew(bearer(token)))).toEqual([400, 'INVALID_INPUT'])
    expect(refusal(await renew({ 'x-api-key': home.tokens.user }))).toEqual([400, 'INVALID_INPUT'])
    expect(refusal(await renew(bearer(refreshToken)))).toEqual(UNKNOWN)
    expect(refusal(await renew({}))).toEqual(UNKNOWN)
  })

  test('a cookie in use is renewed, once in thirty minutes at most', async () => {
    const mine = await cookieOf(home, 'user')
    const renewed = async () => given(await stranger.get('/me', mine))
    expect((await renewed()).cookie).toBe('')
    later(29 * MINUTE)
    expect((await renewed()).cookie).toBe('')
    later(2 * MINUTE)
    const { cookie, attributes } = await renewed()
    expect(cookie).toBe(mine.cookie)
    expect(attributes).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax'])
    expect((await renewed()).cookie).toBe('')
    later(31 * MINUTE)
    expect((await renewed()).cookie).toBe(mine.cookie)
  })

  test('a cookie in use goes on for good, one out of use ends after thirty days and is cleared', async () => {
    const mine = await cookieOf(home, 'user')
    for (let month = 0; month < 3; month++) {
      later(29 * DAY)
      expect(await statusOf(mine)).toBe(200)
    }
    later(30 * DAY + SECOND)
    const ended = await stranger.get('/me', mine)
    expect(refusal(ended)).toEqual(UNKNOWN)
    expect(clears(ended, home)).toBe(true)
  })
})

describe('signing out', () => {
  const signOut = (headers: Record<string, string>) => stranger.post('/logout', undefined, headers)

  test('ends the session behind a cookie at once, and no other', async () => {
    const [mine, other] = [await cookieOf(home, 'user'), await cookieOf(home, 'user')]
    expect(await statusOf(mine)).toBe(200)
    const answer = await signOut(mine)
    expect([answer.status, answer.body]).toEqual([200, { success: true }])
    expect(clears(answer, home)).toBe(true)
    expect(await statusOf(mine)).toBe(401)
    expect(await statusOf(other)).toBe(200)
  })

  test('ends the session behind an access token at once, with all its tokens', async () => {
    const first = await pairOf(home, 'user')
    const second: Pair = (await refresh(first.refreshToken)).body.payload
    const other = await pairOf(home, 'user')
    const answer = await signOut(bearer(second.token))
    expect([answer.status, answer.body]).toEqual([200, { success: true }])
    for (const { token } of [first, second]) expect(await statusOf(bearer(token))).toBe(401)
    expect(refusal(await refresh(second.refreshToken))).toEqual(UNKNOWN)
    expect(await statusOf(bearer(other.token))).toBe(200)
  })

  test('does not end an API token', async () => {
    expect((await signOut({ 'x-api-key': home.tokens.user })).status).toBe(200)
    expect((await home.as('user').get('/me')).status).toBe(200)
  })

  test('is for those who are signed in', async () => {
    expect(refusal(await signOut({}))).toEqual(UNKNOWN)
  })
})

const current = (session: { current: boolean }) => session.current

describe('my sessions', () => {
  test('are listed with what helps to recognise them, and nothing that continues them', async () => {
    const here = await house()
    const pair = await pairOf(here, 'user')
    await cookieOf(here, 'other')
    const mine = await cookieOf(here, 'user')
    const { status, body } = await here.stranger.get('/me/sessions', mine)
    expect(status).toBe(200)
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const common = { _id: expect.any(String), userAgent: 'a browser', address: '192.0.2.1' }
    const times = { created: time, used: time, expires: time }
    expect(body).toHaveLength(2)
    expect(body).toContainEqual({ ...common, ...times, kind: 'cookie', current: true })
    expect(body).toContainEqual({ ...common, ...times, kind: 'oauth', current: false })
    const text = JSON.stringify(body)
    for (const key of [pair.refreshToken, pair.token, mine.cookie.split('=')[1] ?? '']) expect(text).not.toContain(key)
  })

  test('know the browser that signed in', async () => {
    const answer = await stranger.post(
      '/signup',
      { username: 'ada', password: 'correct horse' },
      { 'user-agent': 'Lynx' },
    )
    const [session] = (await stranger.get('/me/sessions', { cookie: given(answer).cookie })).body
    expect(session.userAgent).toBe('Lynx')
  })

  test('that have run out are not listed', async () => {
    const here = await house()
    await cookieOf(here, 'user')
    const me = here.as('user')
    expect((await me.get('/me/sessions')).body).toHaveLength(1)
    later(30 * DAY + SECOND)
    expect((await me.get('/me/sessions')).body).toEqual([])
  })

  test('can be ended one by one, at once', async () => {
    const [mine, phone, tablet] = [
      await cookieOf(home, 'editor'),
      await cookieOf(home, 'editor'),
      await pairOf(home, 'editor'),
    ]
    const idOf = async (headers: Record<string, string>) =>
      (await stranger.get('/me/sessions', headers)).body.find(current)._id
    for (const lost of [await idOf(phone), await idOf(bearer(tablet.token))]) {
      const answer = await stranger.delete(`/me/sessions/${lost}`, mine)
      expect([answer.status, answer.body]).toEqual([200, { success: true }])
    }
    expect(await statusOf(phone)).toBe(401)
    expect(await statusOf(bearer(tablet.token))).toBe(401)
    expect(refusal(await refresh(tablet.refreshToken))).toEqual(UNKNOWN)
    expect(await statusOf(mine)).toBe(200)
    expect((await stranger.get('/me/sessions', mine)).body).toHaveLength(1)
    const own = await idOf(mine)
    expect((await stranger.delete(`/me/sessions/${own}`, mine)).status).toBe(200)
    expect(await statusOf(mine)).toBe(401)
  })

  test('are nobody else’s: not another user’s, not an admin’s, not another tenant’s', async () => {
    const abroad = await house()
    const mine = await cookieOf(home, 'user')
    const { _id } = (await stranger.get('/me/sessions', mine)).body.find(current)
    for (const other of [home.as('other'), home.as('admin'), abroad.as('user')]) {
      expect(JSON.stringify((await other.get('/me/sessions')).body)).not.toContain(_id)
      expect(refusal(await other.delete(`/me/sessions/${_id}`))).toEqual([404, 'SESSION_NOT_FOUND'])
    }
    expect(await statusOf(mine)).toBe(200)
  })

  test('are closed to strangers, and to an API token that may only read', async () => {
    expect(refusal(await stranger.get('/me/sessions'))).toEqual(UNKNOWN)
    expect(refusal(await stranger.delete('/me/sessions/x'))).toEqual(UNKNOWN)
    const mine = await cookieOf(home, 'user')
    const { token } = (await stranger.post('/me/api-tokens', { nickname: 'reader', scopes: ['accounts:read'] }, mine))
      .body
    const reader = stranger.with({ 'x-api-key': token })
    expect((await reader.get('/me/sessions')).status).toBe(200)
    expect(refusal(await reader.delete('/me/sessions/x'))).toEqual([403, 'FORBIDDEN'])
  })

  test.each([
    ['a zero', '%00'],
    ['a word', 'x'],
    ['nobody’s', '00000000-0000-7000-8000-000000000000'],
    ['a quote', "'"],
    ['not even decoded', '%zz'],
    ['too long', 'x'.repeat(200)],
  ])('an id that is %s is not found', async (_, id) => {
    expect(refusal(await home.as('user').delete(`/me/sessions/${id}`))).toEqual([404, 'SESSION_NOT_FOUND'])
  })
})
