import { afterEach, expect, test } from 'bun:test'
import { now, toIsoString } from '../../src/core/clock'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { advanceClock, createSignedInClient, MINUTE, resetClock } from './session-fixtures'

const home = await createTestTenant()
const { stranger } = home
const user = await createSignedInClient(home, 'user')
const createTokenClient = (token: string) => stranger.with({ 'x-api-key': token })

afterEach(resetClock)

test('a new API token is shown once; after that only how it begins', async () => {
  const answer = await user.post('/me/api-tokens', { nickname: 'nightly job' })
  expect(answer.status).toBe(201)
  const { token, apiToken } = answer.body
  expect(token).toMatch(/^atl_[0-9a-f]{64}$/)
  expect(answer.body).toEqual({
    token,
    apiToken: {
      _id: expect.any(String),
      nickname: 'nightly job',
      tokenPrefix: token.slice(0, apiToken.tokenPrefix.length),
      scopes: [],
      expiresAt: null,
      lastUsedAt: null,
      workspace: null,
      created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    },
  })
  expect(apiToken.tokenPrefix.length).toBeWithin(6, 17)
  expect((await createTokenClient(token).get('/me')).body._id).toBe(home.users.user)

  const { status, body } = await user.get('/me/api-tokens')
  expect(status).toBe(200)
  expect(body.find(({ _id }: { _id: string }) => _id === apiToken._id)).toMatchObject({ nickname: 'nightly job' })
  expect(JSON.stringify(body)).not.toContain(token)
  expect(JSON.stringify(body)).not.toMatch(/hash/)
})

test('it is noted when a token was used', async () => {
  const { token, apiToken } = (await user.post('/me/api-tokens', { nickname: 'used' })).body
  const before = toIsoString(now())
  await createTokenClient(token).get('/me')
  // The note is on its way; a write that comes after it waits for it.
  await user.post('/me', { metadata: {} })
  const { body } = await user.get('/me/api-tokens')
  const { lastUsedAt } = body.find(({ _id }: { _id: string }) => _id === apiToken._id)
  expect(lastUsedAt >= before).toBe(true)
})

test('a user has twenty tokens at most, even of many who are made at once', async () => {
  const other = await createSignedInClient(home, 'other') // who has one already
  const made = await Promise.all([...Array(21).keys()].map((n) => other.post('/me/api-tokens', { nickname: `${n}` })))
  const refused = made.filter(({ status }) => status !== 201)
  expect(refused.map(statusAndCode)).toEqual([
    [409, 'TOO_MANY_TOKENS'],
    [409, 'TOO_MANY_TOKENS'],
  ])
  expect((await other.get('/me/api-tokens')).body).toHaveLength(20)

  const [{ _id }] = (await other.get('/me/api-tokens')).body
  await other.delete(`/me/api-tokens/${_id}`)
  expect((await other.post('/me/api-tokens', { nickname: 'one more' })).status).toBe(201)
})

test('a token ends when it was said to, also for who used it a moment before', async () => {
  const expiresAt = toIsoString(now() + 60 * MINUTE)
  const { token, apiToken } = (await user.post('/me/api-tokens', { nickname: 'short', expiresAt })).body
  expect(apiToken.expiresAt).toBe(expiresAt)
  advanceClock(59 * MINUTE)
  expect((await createTokenClient(token).get('/me')).status).toBe(200)
  advanceClock(2 * MINUTE)
  expect(statusAndCode(await createTokenClient(token).get('/me'))).toEqual([401, 'UNAUTHENTICATED'])
})

test('the end of a token is told in UTC, in whatever zone it was given', async () => {
  const answer = await user.post('/me/api-tokens', { nickname: 'zone', expiresAt: '2999-01-01T00:30:00+02:00' })
  expect(answer.body.apiToken.expiresAt).toBe('2998-12-31T22:30:00.000Z')
})

test('scopes narrow what a token is good for', async () => {
  const tokenFor = async (...scopes: string[]) => {
    const { status, body } = await user.post('/me/api-tokens', { nickname: 'scoped', scopes })
    expect([status, body.apiToken?.scopes]).toEqual([201, scopes])
    return createTokenClient(body.token)
  }
  const [reader, writer, elsewhere] = [
    await tokenFor('accounts:read'),
    await tokenFor('accounts:write'),
    await tokenFor('entities:write', 'blueprints:read'),
  ]
  const change = { metadata: { colour: 'teal' } }
  expect((await reader.get('/me')).status).toBe(200)
  expect(statusAndCode(await reader.post('/me', change))).toEqual([403, 'FORBIDDEN'])
  expect(statusAndCode(await reader.get('/blueprints'))).toEqual([403, 'FORBIDDEN'])
  expect((await writer.get('/me')).status).toBe(200)
  expect((await writer.post('/me', change)).status).toBe(200)
  expect(statusAndCode(await elsewhere.get('/me'))).toEqual([403, 'FORBIDDEN'])
  expect((await elsewhere.get('/blueprints')).status).toBe(200)
})

test('scopes give nobody more than they have', async () => {
  const { token } = (await user.post('/me/api-tokens', { nickname: 'greedy', scopes: ['blueprints:write'] })).body
  expect(statusAndCode(await createTokenClient(token).post('/blueprints', {}))).toEqual([403, 'FORBIDDEN'])
})

test('who came by a token makes no other, and ends none', async () => {
  const { body } = await user.get('/me/api-tokens')
  const bot = home.as('user')
  expect(statusAndCode(await bot.post('/me/api-tokens', { nickname: 'heir' }))).toEqual([403, 'FORBIDDEN'])
  expect(statusAndCode(await bot.delete(`/me/api-tokens/${body[0]._id}`))).toEqual([403, 'FORBIDDEN'])
  expect((await user.get('/me/api-tokens')).body).toHaveLength(body.length)
})

test('who came by a token does not see the others', async () => {
  expect(statusAndCode(await home.as('user').get('/me/api-tokens'))).toEqual([403, 'FORBIDDEN'])
})

test('a token that was removed is refused at once', async () => {
  const { token, apiToken } = (await user.post('/me/api-tokens', { nickname: 'lost' })).body
  expect((await createTokenClient(token).get('/me')).status).toBe(200)
  const answer = await user.delete(`/me/api-tokens/${apiToken._id}`)
  expect([answer.status, answer.body]).toEqual([200, { success: true }])
  expect(statusAndCode(await createTokenClient(token).get('/me'))).toEqual([401, 'UNAUTHENTICATED'])
  expect(statusAndCode(await user.delete(`/me/api-tokens/${apiToken._id}`))).toEqual([404, 'API_TOKEN_NOT_FOUND'])
})

test('tokens are nobody else’s: not another user’s, not an admin’s, not another tenant’s', async () => {
  const abroad = await createTestTenant()
  const { token, apiToken } = (await user.post('/me/api-tokens', { nickname: 'mine' })).body
  for (const other of [
    await createSignedInClient(home, 'other'),
    await createSignedInClient(home, 'admin'),
    await createSignedInClient(abroad, 'user'),
  ]) {
    expect(JSON.stringify((await other.get('/me/api-tokens')).body)).not.toContain(apiToken._id)
    expect(statusAndCode(await other.delete(`/me/api-tokens/${apiToken._id}`))).toEqual([404, 'API_TOKEN_NOT_FOUND'])
  }
  expect((await createTokenClient(token).get('/me')).status).toBe(200)
})

test('strangers have no tokens', async () => {
  expect((await stranger.get('/me/api-tokens')).status).toBe(401)
  expect((await stranger.post('/me/api-tokens', { nickname: 'x' })).status).toBe(401)
  expect((await stranger.delete('/me/api-tokens/x')).status).toBe(401)
})

test.each([
  ['without a nickname', { nickname: undefined }],
  ['with an empty nickname', { nickname: '' }],
  ['with a scope that is none', { scopes: ['everything'] }],
  ['with a scope that neither reads nor writes', { scopes: ['accounts:delete'] }],
  ['with scopes that are no list', { scopes: 'accounts:read' }],
  ['that has ended already', { expiresAt: '2020-01-01T00:00:00.000Z' }],
  ['that ends at no time', { expiresAt: 'tomorrow' }],
])('a token %s is not made', async (_, flaw) => {
  const answer = await user.post('/me/api-tokens', { nickname: 'odd', ...flaw })
  expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
})

test.each([
  ['a zero', '%00'],
  ['a word', 'x'],
  ['a quote', "'"],
  ['not even decoded', '%zz'],
  ['too long', 'x'.repeat(200)],
])('an id that is %s is not found', async (_, id) => {
  expect(statusAndCode(await user.delete(`/me/api-tokens/${id}`))).toEqual([404, 'API_TOKEN_NOT_FOUND'])
})
